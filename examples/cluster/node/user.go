package node

import (
	"fmt"
	"os/user"
	"strconv"
)

// groupsOf returns the primary group of a user, and all of its groups.
func groupsOf(uid uint32) (gid uint32, groups []uint32, err error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return 0, nil, fmt.Errorf("user %d is not one of this machine: %w", uid, err)
	}
	names, err := u.GroupIds()
	if err != nil {
		return 0, nil, err
	}
	for _, name := range append([]string{u.Gid}, names...) {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return 0, nil, err
		}
		groups = append(groups, uint32(n))
	}
	return groups[0], groups, nil
}
