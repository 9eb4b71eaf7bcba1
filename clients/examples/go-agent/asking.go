package main

import (
	"context"
	"errors"
	"log"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// backOff waits longer and longer between tries.
type backOff struct{ pause time.Duration }

// wait is false if the agent has to end meanwhile.
func (b *backOff) wait(ctx context.Context) bool {
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	return sleep(ctx, b.pause)
}

// sleep is false if the agent has to end meanwhile.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// worthAnotherTry tells errors that go away by themselves from those that would come again. With
// either code the call can be made again as it was: what was done is then found done.
func worthAnotherTry(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return true
	}
	return false
}

// asking makes one call, with a deadline for each try, until it is answered or cannot be.
func asking[T any](
	ctx context.Context, deadline time.Duration, what string, call func(context.Context) (T, error),
) (T, error) {
	var pauses backOff
	for {
		try, cancel := context.WithTimeout(ctx, deadline)
		answer, err := call(try)
		cancel()
		if err == nil || ctx.Err() != nil || !worthAnotherTry(err) {
			return answer, err
		}
		if pauses.pause == 0 {
			log.Printf("%s: %v: trying again", what, err)
		}
		if !pauses.wait(ctx) {
			return answer, errors.Join(err, ctx.Err())
		}
	}
}
