// Checks histories of locks with Porcupine, line by line from stdin, and prints for each whether there is an order of its
// operations in which a mutex with owners and fencing tokens would give these answers: "ok", "illegal" or "unknown".
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// A request of a caller, or an event that affects the lock.
type operation struct {
	Kind    string // acquire, open (an acquisition without an answer), release, end (of a lease) or upset
	Holder  string // the acquisition that it is about
	Token   int64  // of an acquisition
	Must    bool   // a release that was confirmed: its holder must have held the lock
	Call    int64
	Return  int64
	Process int
}

type state struct {
	holder string
	token  int64
}

// The model of a mutex. Returns every state in which the lock may be afterwards; none if the operation cannot have had
// this answer.
func step(current, input, _ interface{}) []interface{} {
	lock, op := current.(state), input.(operation)
	switch op.Kind {
	case "acquire":
		if lock.holder != "" || op.Token <= lock.token {
			return nil
		}
		return []interface{}{state{op.Holder, op.Token}}
	case "open":
		if lock.holder != "" {
			return []interface{}{lock}
		}
		return []interface{}{lock, state{op.Holder, lock.token}}
	case "release", "end":
		if lock.holder == op.Holder {
			return []interface{}{state{"", lock.token}}
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

func main() {
	mutex := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{}} },
		Step: step,
	}
	model := mutex.ToModel()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		var operations []operation
		if err := json.Unmarshal(lines.Bytes(), &operations); err != nil {
			panic(err)
		}
		history := make([]porcupine.Operation, len(operations))
		for i, op := range operations {
			history[i] = porcupine.Operation{ClientId: op.Process, Input: op, Call: op.Call, Return: op.Return}
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
