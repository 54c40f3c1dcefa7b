package main

import (
	"sort"
	"strings"
)

// A lock that readers share, or one writer holds. Like all states, it has to be comparable, so the holders are a text.
type readWrite struct {
	holders string // each with its mode, its owner id and its acquisition, sorted
	highest int64  // the highest token so far
	written int64  // that of the latest writer's grant: readers may come in another order than their tokens
}

const (
	reads  = "r "
	writes = "w "
)

func (lock readWrite) list() []string {
	if lock.holders == "" {
		return nil
	}
	return strings.Split(lock.holders, "\n")
}

func (lock readWrite) with(holders []string) readWrite {
	sort.Strings(holders)
	lock.holders = strings.Join(holders, "\n")
	return lock
}

func (op operation) reader() string {
	if op.Reads {
		return reads + op.Owner + " " + op.Holder
	}
	return writes + op.Owner + " " + op.Holder
}

// Whether this holder may be beside the others. A writer may read as well, under its own owner id.
func joins(holders []string, op operation) bool {
	for _, holder := range holders {
		mode, rest := holder[:2], holder[2:]
		owner, _, _ := strings.Cut(rest, " ")
		if op.Reads && mode == reads || op.Reads && owner == op.Owner {
			continue
		}
		return false
	}
	return true
}

// The model of a read/write lock: see step. Acquisitions without an answer are not in it, because they exclude nothing.
func stepReaders(current, input, _ interface{}) []interface{} {
	lock, op := current.(readWrite), input.(operation)
	holders := lock.list()
	switch op.Kind {
	case "acquire":
		least := lock.highest
		if op.Reads {
			least = lock.written
		}
		if !joins(holders, op) || op.Token <= least {
			return nil
		}
		next := lock.with(append(holders, op.reader()))
		if op.Token > next.highest {
			next.highest = op.Token
		}
		if !op.Reads {
			next.written = next.highest
		}
		return []interface{}{next}
	case "release", "end":
		for i, holder := range holders {
			if holder == op.reader() {
				return []interface{}{lock.with(append(holders[:i:i], holders[i+1:]...))}
			}
		}
		if op.Must {
			return nil
		}
		return []interface{}{lock}
	case "upset":
		return []interface{}{lock, lock.with(nil)}
	}
	panic("unknown operation " + op.Kind)
}

func hasReaders(operations []operation) bool {
	for _, op := range operations {
		if op.Reads {
			return true
		}
	}
	return false
}
