package node

import (
	"fmt"
	"os/user"
	"strconv"
	"syscall"
)

// lookup returns the credential of a user: its groups are those of the machine.
func lookup(uid uint32) (*syscall.Credential, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil, fmt.Errorf("user %d is not one of this machine: %w", uid, err)
	}
	names, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	c := &syscall.Credential{Uid: uid}
	for _, name := range append([]string{u.Gid}, names...) {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return nil, err
		}
		c.Groups = append(c.Groups, uint32(n))
	}
	c.Gid = c.Groups[0]
	return c, nil
}
