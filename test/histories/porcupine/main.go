// Checks histories of locks with Porcupine, line by line from stdin, and prints for each whether there is an order of its
// operations in which a lock that one or n may hold, or readers and writers, with owners and fencing tokens, would give
// these answers: "ok", "illegal" or "unknown".
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A request of a caller, or an event that affects the lock.
type operation struct {
	Kind    string // acquire, open (an acquisition without an answer), release, end (of a lease) or upset
	Holder  string // the acquisition that it is about
	Owner   string // the owner id of that acquisition
	Reads   bool   // whether it is about a lock as a reader
	Token   int64  // of an acquisition
	Most    int    // how many may hold the lock according to it; 0: it holds the lock alone
	Must    bool   // a release that was confirmed: its holder must have held the lock
	Call    int64
	Return  int64
	Process int
}

// States have to be comparable, so the holders are a text: each with the number of its acquisition, sorted.
type state struct {
	holders string
	token   int64 // the last one of those that held it alone
}

func (lock state) list() []string {
	if lock.holders == "" {
		return nil
	}
	return strings.Split(lock.holders, "\n")
}

func (lock state) with(holders []string) state {
	sort.Strings(holders)
	return state{strings.Join(holders, "\n"), lock.token}
}

func (op operation) holder() string {
	return strconv.Itoa(op.Most) + " " + op.Holder
}

// Whether these may hold the lock at the same time: one that holds it alone, or as many as each of them allows, if they
// came in the order of their numbers.
func fits(holders []string) bool {
	if len(holders) == 1 {
		return true
	}
	most := make([]int, len(holders))
	for i, holder := range holders {
		number, _, _ := strings.Cut(holder, " ")
		most[i], _ = strconv.Atoi(number)
	}
	sort.Ints(most)
	for i, each := range most {
		if each <= i {
			return false
		}
	}
	return true
}

// The model of a lock. Returns every state in which it may be afterwards; none if the operation cannot have had this
// answer.
func step(current, input, _ interface{}) []interface{} {
	lock, op := current.(state), input.(operation)
	holders := lock.list()
	switch op.Kind {
	case "acquire":
		after := append(holders, op.holder())
		if !fits(after) || (op.Most == 0 && op.Token <= lock.token) {
			return nil
		}
		next := lock.with(after)
		if op.Most == 0 {
			next.token = op.Token
		}
		return []interface{}{next}
	case "open":
		after := append(holders, op.holder())
		if !fits(after) {
			return []interface{}{lock}
		}
		return []interface{}{lock, lock.with(after)}
	case "release", "end":
		for i, holder := range holders {
			if holder == op.holder() {
				return []interface{}{lock.with(append(holders[:i:i], holders[i+1:]...))}
			}
		}
		if op.Must {
			return nil
		}
		return []interface{}{lock}
	case "upset":
		return []interface{}{lock, state{"", lock.token}}
	}
	panic("unknown operation " + op.Kind)
}

// Whether two acquisitions by n, or two readers, have the same token. Their tokens need not grow, so no order of them
// would show it.
func repeatsToken(operations []operation) bool {
	seen := map[int64]bool{}
	for _, op := range operations {
		if op.Kind != "acquire" || op.Most == 0 && !op.Reads {
			continue
		}
		if seen[op.Token] {
			return true
		}
		seen[op.Token] = true
	}
	return false
}

func main() {
	lock := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{}} },
		Step: step,
	}
	readers := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{readWrite{}} },
		Step: stepReaders,
	}
	alone, shared := lock.ToModel(), readers.ToModel()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		var operations []operation
		if err := json.Unmarshal(lines.Bytes(), &operations); err != nil {
			panic(err)
		}
		if repeatsToken(operations) {
			fmt.Println("illegal")
			continue
		}
		history := make([]porcupine.Operation, len(operations))
		for i, op := range operations {
			history[i] = porcupine.Operation{ClientId: op.Process, Input: op, Call: op.Call, Return: op.Return}
		}
		model := alone
		if hasReaders(operations) {
			model = shared
		}
		switch porcupine.CheckOperationsTimeout(model, history, 10*time.Second) {
		case porcupine.Ok:
			fmt.Println("ok")
		case porcupine.Illegal:
			fmt.Println("illegal")
		default:
			fmt.Println("unknown")
		}
	}
}
