package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	kube "example.com/go-agent/gen/numalign/kube/core/v1"
	numalign "example.com/go-agent/gen/numalign/v1"
)

// agent has the pods of one owner judged, and keeps them admitted until it ends.
type agent struct {
	admission numalign.AdmissionClient
	owner     string
	deadline  time.Duration // of one try of one call
	pods      []*pod
}

// pod is one pod that should run on this node.
type pod struct {
	name     string
	uid      string
	message  *kube.Pod
	admitted bool
}

func newAgent(
	admission numalign.AdmissionClient, owner string, deadline time.Duration, objects []*corev1.Pod,
) (*agent, error) {
	made := &agent{admission: admission, owner: owner, deadline: deadline}
	for _, object := range objects {
		message, err := onTheWire(object)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", object.Namespace, object.Name, err)
		}
		made.pods = append(made.pods, &pod{
			name: object.Namespace + "/" + object.Name, uid: string(object.UID), message: message,
		})
	}
	return made, nil
}

// admitAll presents every pod in order. Those that are admitted already keep what they have, so it
// is right at the start and after whatever has happened to numalign.
func (a *agent) admitAll(ctx context.Context) error {
	for _, one := range a.pods {
		if err := a.admit(ctx, one); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return a.reconcile(ctx)
}

// admit asks about one pod until there is a verdict for good.
func (a *agent) admit(ctx context.Context, one *pod) error {
	request := &numalign.AdmitRequest{
		Pod: one.message, Owner: a.owner, Explain: numalign.ExplainLevel_EXPLAIN_LEVEL_SUMMARY,
	}
	for {
		answer, err := asking(ctx, a.deadline, one.name,
			func(try context.Context) (*numalign.AdmitResponse, error) {
				return a.admission.Admit(try, request)
			})
		if err != nil {
			return err
		}
		switch answer.Verdict {
		case numalign.Verdict_VERDICT_ADMITTED:
			err := a.start(ctx, one, answer)
			if status.Code(err) != codes.NotFound {
				return err
			}
			// Released or lost since it was admitted: it has to be admitted anew.
			one.admitted = false
			continue
		case numalign.Verdict_VERDICT_REJECTED:
			one.admitted = false
			say(one, answer)
			return nil
		}
		// A critical pod names victims. Ending pods is for who runs them; this agent waits until
		// there is room.
		say(one, answer)
		if !sleep(ctx, max(answer.RetryAfter.AsDuration(), firstPause)) {
			return ctx.Err()
		}
	}
}

// start says what the pod got, and what a runtime has to set before its containers run.
func (a *agent) start(ctx context.Context, one *pod, answer *numalign.AdmitResponse) error {
	if one.admitted && answer.AlreadyAdmitted {
		return nil
	}
	one.admitted = true
	say(one, answer)
	for _, container := range answer.Allocations {
		request := &numalign.PrepareContainerRequest{
			PodUid: one.uid, ContainerName: container.Container,
		}
		prepared, err := asking(ctx, a.deadline, one.name,
			func(try context.Context) (*numalign.PrepareContainerResponse, error) {
				return a.admission.PrepareContainer(try, request)
			})
		if err != nil {
			return err
		}
		fmt.Printf("  %s: %s\n", container.Container, given(container))
		for _, line := range applied(prepared) {
			fmt.Printf("    %s\n", line)
		}
	}
	return nil
}

// reconcile gives back what an earlier process of this agent left: pods of this owner that are not
// among its pods now.
func (a *agent) reconcile(ctx context.Context) error {
	listed, err := asking(ctx, a.deadline, "listing",
		func(try context.Context) (*numalign.ListAdmissionsResponse, error) {
			return a.admission.ListAdmissions(try, &numalign.ListAdmissionsRequest{Owner: a.owner})
		})
	if err != nil {
		return err
	}
	request := &numalign.ReconcileRequest{
		Owner: a.owner, AsOfRevision: listed.Revision, SourcesReady: true,
	}
	for _, one := range a.pods {
		request.ActivePodUids = append(request.ActivePodUids, one.uid)
	}
	answer, err := asking(ctx, a.deadline, "reconciling",
		func(try context.Context) (*numalign.ReconcileResponse, error) {
			return a.admission.Reconcile(try, request)
		})
	if err != nil {
		return err
	}
	for _, uid := range answer.ReleasedPodUids {
		fmt.Printf("%s released: left by an earlier run\n", uid)
	}
	return nil
}

// follow watches what is admitted until the agent has to end. Each time that numalign was away, it
// presents the pods again: a restart keeps them, but a state that was lost knows them no more.
func (a *agent) follow(ctx context.Context) error {
	var pauses backOff
	for {
		err := a.watch(ctx, &pauses)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !worthAnotherTry(err) {
			return err
		}
		log.Printf("the watch has ended (%v): asking about the pods again", err)
		if !pauses.wait(ctx) {
			return nil
		}
		if err := a.admitAll(ctx); err != nil {
			return err
		}
	}
}

// watch prints what happens to this agent's pods, and asks again about one that somebody released.
func (a *agent) watch(ctx context.Context, pauses *backOff) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.admission.WatchAssignments(ctx, &numalign.WatchAssignmentsRequest{})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		pauses.pause = 0
		switch what := event.Event.(type) {
		case *numalign.WatchAssignmentsResponse_Synced:
			fmt.Println("watching")
		case *numalign.WatchAssignmentsResponse_Changed:
			if one := a.find(what.Changed.PodUid); one != nil {
				for _, problem := range what.Changed.Problems {
					fmt.Printf("%s: %s\n", one.name, problem)
				}
			}
		case *numalign.WatchAssignmentsResponse_SharedCpus:
			fmt.Printf("shared CPUs are now %s\n", what.SharedCpus.Cpus)
		case *numalign.WatchAssignmentsResponse_Released:
			if one := a.find(what.Released.PodUid); one != nil && one.admitted {
				fmt.Printf("%s was released, but runs here: asking again\n", one.name)
				one.admitted = false
				if err := a.admit(ctx, one); err != nil {
					return err
				}
			}
		}
	}
}

func (a *agent) find(uid string) *pod {
	for _, one := range a.pods {
		if one.uid == uid {
			return one
		}
	}
	return nil
}

// releaseAll gives back what the pods hold. One that is not admitted has nothing to give back.
func (a *agent) releaseAll(ctx context.Context) error {
	for _, one := range a.pods {
		if !one.admitted {
			continue
		}
		_, err := asking(ctx, a.deadline, one.name,
			func(try context.Context) (*numalign.ReleaseResponse, error) {
				return a.admission.Release(try, &numalign.ReleaseRequest{PodUid: one.uid})
			})
		if err != nil && status.Code(err) != codes.NotFound {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Printf("%s released\n", one.name)
	}
	return nil
}

// say prints a decision.
func say(one *pod, answer *numalign.AdmitResponse) {
	fmt.Printf("%s %s", one.name, verdictOf(answer.Verdict))
	if answer.Reason != "" {
		fmt.Printf(" (%s): %s", answer.Reason, answer.Message)
	} else if answer.AlreadyAdmitted {
		fmt.Print(" before")
	}
	fmt.Println()
	if summary := answer.GetExplanation().GetSummary(); summary != "" && answer.Reason != "" {
		fmt.Printf("  %s\n", summary)
	}
	for _, warning := range answer.Warnings {
		fmt.Printf("  warning: %s\n", warning)
	}
}
