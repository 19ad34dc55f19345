package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Colors by class, on white and in the dark. The page sets the dark ones in its style.
var colors = []struct{ class, light, dark string }{
	{"ink", "#1c1f24", "#e8eaee"}, {"soft", "#5c6470", "#a3abb8"}, {"grid", "#e1e4e9", "#2c323b"}, {"out", "#f1f2f5", "#1d2128"},
	{"whole", "#c2570c", "#f08c3e"}, {"partial", "#2563a8", "#6aa9f0"}, {"chance", "#8b929d", "#7d8592"},
	{"job", "#6b95c9", "#4f7fb8"}, {"prolog", "#7a4fb0", "#b893ea"}, {"epilog", "#b97f0a", "#e3b341"}, {"idle", "#cf3530", "#ff6b63"},
	{"free", "#ffffff", "#15181d"},
}

func light(class string) string {
	for _, c := range colors {
		if c.class == class {
			return c.light
		}
	}
	panic("no color " + class)
}

// The measures of a drawing, in pixels.
const (
	wide, narrow = 680, 360
	fontSize     = 12
	marginLeft   = 50
	marginRight  = 14
)

// A drawing is an SVG image that grows downward. One that stands alone has a background and
// a size, and no hints for a mouse.
type drawing struct {
	bytes.Buffer
	width, bottom float64
	alone         bool
}

// svg returns the image.
func (d *drawing) svg(title string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" font-family="system-ui, sans-serif" font-size="%d"`, d.width, d.bottom, fontSize)
	if d.alone {
		fmt.Fprintf(&b, ` width="%g" height="%g"`, d.width, d.bottom)
	}
	fmt.Fprintf(&b, "><title>%s</title>\n", html.EscapeString(title))
	if d.alone {
		fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", light("free"))
	}
	b.Write(d.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (d *drawing) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s" fill="%s">%s</text>`+"\n", x, y, anchor, class, light(class), html.EscapeString(text))
}

func (d *drawing) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s" fill="%s"/>`+"\n", x, y, w, h, class, light(class))
}

func (d *drawing) path(path, class string, width float64) {
	fmt.Fprintf(d, `<path d="%s" fill="none" class="%s" stroke="%s" stroke-width="%g" stroke-linejoin="round"/>`+"\n", path, class, light(class), width)
}

// legend names classes in a line.
func (d *drawing) legend(classes, names []string) {
	x := 2.0
	for i, class := range classes {
		if class == "free" {
			d.rect(x-1, d.bottom+3, 14, 12, "soft")
		}
		d.rect(x, d.bottom+4, 12, 10, class)
		d.text(x+17, d.bottom+13, "start", "ink", names[i])
		x += 30 + 6.4*float64(len(names[i]))
	}
	d.bottom += 24
}

// An axis maps values to the part of its length that is before them.
type axis struct {
	lo, hi float64
	log    bool
	ticks  []float64
	text   func(float64) string
}

func (a axis) at(v float64) float64 {
	part := (v - a.lo) / (a.hi - a.lo)
	if a.log {
		part = math.Log(max(v, a.lo)/a.lo) / math.Log(a.hi/a.lo)
	}
	return min(max(part, 0), 1)
}

// Steps between ticks: of times in seconds, and of numbers.
var timeSteps = []float64{
	1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 86400, 2 * 86400, 4 * 86400, 8 * 86400, 16 * 86400, 32 * 86400, 100 * 86400,
	365 * 86400, 1000 * 86400, 4000 * 86400, 16000 * 86400, // more than 200 years have 5
}

var numberSteps = func() (list []float64) {
	for e := -3.0; e < 12; e++ {
		list = append(list, math.Pow(10, e), 2*math.Pow(10, e), 5*math.Pow(10, e))
	}
	return list
}()

// linear returns an axis with at most n steps.
func linear(lo, hi float64, n int, steps []float64, text func(float64) string) axis {
	hi = max(hi, lo+steps[0])
	i := 0
	for i < len(steps)-1 && (hi-lo)/steps[i] > float64(n) {
		i++
	}
	a := axis{lo: lo, hi: hi, text: text}
	for t := math.Ceil(lo/steps[i]) * steps[i]; t <= hi; t += steps[i] {
		a.ticks = append(a.ticks, t)
	}
	return a
}

// logarithmic returns an axis with at most n of the ticks.
func logarithmic(lo, hi float64, n int, ticks []float64, text func(float64) string) axis {
	a := axis{lo: lo, hi: max(hi, 2*lo), log: true, text: text}
	for _, t := range ticks {
		if a.lo <= t && t <= a.hi*1.0001 {
			a.ticks = append(a.ticks, t)
		}
	}
	every := (len(a.ticks) + n - 1) / n
	for i := range a.ticks {
		if i*every < len(a.ticks) {
			a.ticks[i] = a.ticks[i*every]
		}
	}
	a.ticks = a.ticks[:(len(a.ticks)+max(1, every)-1)/max(1, every)]
	return a
}

// A panel is a part of a drawing with two axes.
type panel struct {
	d         *drawing
	x, y      axis
	top, high float64
}

// panel begins a panel with a label above it.
func (d *drawing) panel(label string, high float64, x, y axis) panel {
	d.text(marginLeft, d.bottom+13, "start", "ink", label)
	p := panel{d, x, y, d.bottom + 22, high}
	d.bottom += 22 + high + 12
	return p
}

func (p panel) px(v float64) float64 {
	return marginLeft + p.x.at(v)*(p.d.width-marginLeft-marginRight)
}
func (p panel) py(v float64) float64 { return p.top + p.high - p.y.at(v)*p.high }

// grid draws lines at the ticks, and texts at those of the y axis.
func (p panel) grid() {
	for _, t := range p.y.ticks {
		p.d.path(fmt.Sprintf("M%d %.1fH%.1f", marginLeft, p.py(t), p.d.width-marginRight), "grid", 1)
		p.d.text(marginLeft-6, p.py(t)+4, "end", "soft", p.y.text(t))
	}
	for _, t := range p.x.ticks {
		p.d.path(fmt.Sprintf("M%.1f %.1fV%.1f", p.px(t), p.top, p.top+p.high), "grid", 1)
	}
}

// xAxis writes the texts of the x axis, and ends the drawing.
func (p panel) xAxis(label string) {
	d := p.d
	for _, t := range p.x.ticks {
		text := p.x.text(t)
		d.text(min(p.px(t), d.width-4*float64(len(text))), d.bottom+4, "middle", "soft", text)
	}
	d.text((marginLeft+d.width-marginRight)/2, d.bottom+22, "middle", "soft", label)
	d.bottom += 30
}

// line draws points as a line. Those that nobody could tell from the one before are left out.
func (p panel) line(class string, points [][2]float64) {
	var b bytes.Buffer
	lastX, lastY, command := math.Inf(-1), 0.0, 'M'
	for i, v := range points {
		x, y := p.px(v[0]), p.py(v[1])
		if i < len(points)-1 && x-lastX < 0.5 && math.Abs(y-lastY) < 0.5 {
			continue
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", command, x, y)
		lastX, lastY, command = x, y, 'L'
	}
	p.d.path(b.String(), class, 1.8)
}

func (p panel) dot(x, y float64, class string) {
	fmt.Fprintf(p.d, `<circle cx="%.1f" cy="%.1f" r="4" class="%s" fill="%s"/>`+"\n", p.px(x), p.py(y), class, light(class))
}
