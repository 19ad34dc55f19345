package alloc

// ParseFromManager parses a line that a manager wrote: a HelloResponse, ReadyResponse, Request,
// Cancel, Prioritize, Free, Expiration or Feasibility. A message and its response have one
// topic, so each side has a function.
//
// The message is nil for a failure, which has an errnum, and for another topic. A ready
// response without a payload, as in early drafts, reads as the zero one. The errors are those of
// ParseLine and Parse; the Line then has what could be read, and no Topic if the text is no line.
// It retains nothing of b but Line.Payload.
func ParseFromManager(b []byte) (Line, Message, error) {
	return parseLine(b, func(l Line) (Message, error) {
		switch l.Topic {
		case TopicHello:
			return parseAny[HelloResponse](l)
		case TopicReady:
			if len(l.Payload) == 0 {
				return ReadyResponse{}, nil
			}
			return parseAny[ReadyResponse](l)
		case TopicAlloc:
			return parseAny[Request](l)
		case TopicCancel:
			return parseAny[Cancel](l)
		case TopicPrioritize:
			return parseAny[Prioritize](l)
		case TopicFree:
			return parseAny[Free](l)
		case TopicExpiration:
			return parseAny[Expiration](l)
		case TopicFeasibility:
			return parseAny[Feasibility](l)
		}
		return nil, nil
	})
}

// ParseFromScheduler is ParseFromManager for a line that a scheduler wrote: a Hello, Ready or
// Response, or a response to Expiration or Feasibility, which has no payload and no message.
func ParseFromScheduler(b []byte) (Line, Message, error) {
	return parseLine(b, func(l Line) (Message, error) {
		switch l.Topic {
		case TopicHello:
			return parseAny[Hello](l)
		case TopicReady:
			return parseAny[Ready](l)
		case TopicAlloc:
			return parseAny[Response](l)
		}
		return nil, nil
	})
}

func parseLine(b []byte, parse func(Line) (Message, error)) (Line, Message, error) {
	l, err := ParseLine(b)
	if err != nil || l.Errnum != 0 {
		return l, nil, err
	}
	m, err := parse(l)
	return l, m, err
}

func parseAny[M Payload](l Line) (Message, error) {
	m, err := Parse[M](l.Payload)
	if err != nil {
		return nil, err
	}
	return m, nil
}
