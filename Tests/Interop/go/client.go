// The official Go client against a server over TLS, with a certificate authority of the tests and an access token.
//
// usage: client HOST:PORT CA_FILE TOKEN
//
// Prints a line for each part that passed; the first failure ends it with status 1.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/oauth2"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

type address struct {
	Street string `firestore:"street"`
	Number int    `firestore:"number"`
}

type person struct {
	Name    string             `firestore:"name"`
	Born    time.Time          `firestore:"born"`
	Height  float64            `firestore:"height"`
	Tags    []string           `firestore:"tags"`
	Photo   []byte             `firestore:"photo"`
	Place   *latlng.LatLng     `firestore:"place"`
	Home    address            `firestore:"home"`
	Scores  map[string]float64 `firestore:"scores"`
	Changed time.Time          `firestore:"changed,serverTimestamp"`
}

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

func expect(holds bool, format string, values ...interface{}) {
	if !holds {
		log.Output(2, fmt.Sprintf(format, values...))
		os.Exit(1)
	}
}

func connect(ctx context.Context, target, authorities, token string) *firestore.Client {
	pem, err := os.ReadFile(authorities)
	check(err)
	roots := x509.NewCertPool()
	expect(roots.AppendCertsFromPEM(pem), "%s has no certificate", authorities)
	options := []option.ClientOption{
		option.WithEndpoint(target),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots}))),
	}
	if token == "" {
		options = append(options, option.WithoutAuthentication())
	} else {
		options = append(options, option.WithTokenSource(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})))
	}
	client, err := firestore.NewClient(ctx, "interop", options...)
	check(err)
	return client
}

// A document with every kind of field, read back; creation, update and deletion under preconditions.
func documents(ctx context.Context, client *firestore.Client) {
	ada := client.Doc("people/ada")
	written := person{
		Name: "Ada", Born: time.Date(1815, 12, 10, 8, 30, 0, 123456000, time.UTC), Height: 1.68,
		Tags: []string{"a", "ä"}, Photo: []byte{0, 255, 1}, Place: &latlng.LatLng{Latitude: 51.5, Longitude: -0.12},
		Home: address{"St James's Square", 12}, Scores: map[string]float64{"x": 0.5},
	}
	_, err := ada.Create(ctx, written)
	check(err)
	_, err = ada.Create(ctx, written)
	expect(status.Code(err) == codes.AlreadyExists, "a second creation: %v", err)
	found, err := ada.Get(ctx)
	check(err)
	var read person
	check(found.DataTo(&read))
	expect(!read.Changed.IsZero(), "no server timestamp")
	place := read.Place
	expect(place.GetLatitude() == 51.5 && place.GetLongitude() == -0.12, "place: %v", place)
	read.Changed, read.Place, written.Place = time.Time{}, nil, nil
	expect(reflect.DeepEqual(read, written), "read %+v, wrote %+v", read, written)
	_, err = ada.Update(
		ctx, []firestore.Update{
			{Path: "home.number", Value: firestore.Increment(3)}, {Path: "tags", Value: firestore.ArrayUnion("b", "a")},
			{Path: "photo", Value: firestore.Delete},
		}, firestore.LastUpdateTime(found.UpdateTime))
	check(err)
	_, err = ada.Update(
		ctx, []firestore.Update{{Path: "name", Value: "late"}}, firestore.LastUpdateTime(found.UpdateTime))
	expect(status.Code(err) == codes.FailedPrecondition, "an update of an older state: %v", err)
	found, err = ada.Get(ctx)
	check(err)
	number, err := found.DataAt("home.number")
	check(err)
	expect(number == int64(15), "number: %v", number)
	_, err = found.DataAt("photo")
	expect(err != nil, "a deleted field is there")
	_, err = client.Doc("people/nobody").Get(ctx)
	expect(status.Code(err) == codes.NotFound, "a missing document: %v", err)
	_, err = ada.Delete(ctx)
	check(err)
}

// Queries, cursors, a collection group, and documents by their names.
func queries(ctx context.Context, client *firestore.Client) {
	batch := client.Batch()
	var references []*firestore.DocumentRef
	for number := 0; number < 300; number++ {
		reference := client.Doc(fmt.Sprintf("shelves/s%d/books/b%03d", number%3, number))
		references = append(references, reference)
		batch.Set(reference, map[string]interface{}{"n": number, "even": number%2 == 0})
	}
	_, err := batch.Commit(ctx)
	check(err)
	numbers := func(query firestore.Query) []int {
		var found []int
		documents := query.Documents(ctx)
		defer documents.Stop()
		for {
			document, err := documents.Next()
			if errors.Is(err, iterator.Done) {
				return found
			}
			check(err)
			number, err := document.DataAt("n")
			check(err)
			found = append(found, int(number.(int64)))
		}
	}
	shelf := client.Collection("shelves/s1/books")
	found := numbers(shelf.Where("n", ">=", 100).OrderBy("n", firestore.Desc).Limit(3))
	expect(reflect.DeepEqual(found, []int{298, 295, 292}), "descending: %v", found)
	found = numbers(shelf.OrderBy("n", firestore.Asc).StartAfter(10).EndAt(19))
	expect(reflect.DeepEqual(found, []int{13, 16, 19}), "between cursors: %v", found)
	found = numbers(client.CollectionGroup("books").Where("n", "in", []int{7, 8, 400}))
	sort.Ints(found)
	expect(reflect.DeepEqual(found, []int{7, 8}), "in: %v", found)
	found = numbers(client.CollectionGroup("books").Where("even", "==", true))
	expect(len(found) == 150, "a collection group: %d", len(found))
	all, err := client.GetAll(ctx, append(references, client.Doc("shelves/none")))
	check(err)
	expect(len(all) == 301 && all[299].Exists() && !all[300].Exists(), "documents by names")
}

// Increments by transactions that meet each other.
func transactions(ctx context.Context, client *firestore.Client) {
	counter := client.Doc("counters/one")
	_, err := counter.Set(ctx, map[string]int{"n": 0})
	check(err)
	var running sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		running.Add(1)
		go func() {
			defer running.Done()
			for done := 0; done < 10; done++ {
				check(client.RunTransaction(ctx, func(_ context.Context, transaction *firestore.Transaction) error {
					found, err := transaction.Get(counter)
					if err != nil {
						return err
					}
					number, err := found.DataAt("n")
					if err != nil {
						return err
					}
					return transaction.Set(counter, map[string]int64{"n": number.(int64) + 1})
				}, firestore.MaxAttempts(100)))
			}
		}()
	}
	running.Wait()
	found, err := counter.Get(ctx)
	check(err)
	number, err := found.DataAt("n")
	check(err)
	expect(number == int64(40), "40 increments: %v", number)
}

// A listener sees what is added, changed and removed.
func listener(ctx context.Context, client *firestore.Client) {
	rooms := client.Collection("rooms")
	_, err := rooms.Doc("a").Set(ctx, map[string]bool{"open": true})
	check(err)
	snapshots := rooms.Where("open", "==", true).Snapshots(ctx)
	defer snapshots.Stop()
	next := func(kind firestore.DocumentChangeKind, name string) {
		snapshot, err := snapshots.Next()
		check(err)
		changes := snapshot.Changes
		expect(len(changes) == 1 && changes[0].Kind == kind && changes[0].Doc.Ref.ID == name, "changes: %+v", changes)
	}
	next(firestore.DocumentAdded, "a")
	_, err = rooms.Doc("b").Set(ctx, map[string]bool{"open": true})
	check(err)
	next(firestore.DocumentAdded, "b")
	_, err = rooms.Doc("a").Set(ctx, map[string]bool{"open": true, "warm": true})
	check(err)
	next(firestore.DocumentModified, "a")
	_, err = rooms.Doc("b").Set(ctx, map[string]bool{"open": false})
	check(err)
	next(firestore.DocumentRemoved, "b")
}

// A caller without a token, and one with a wrong token.
func strangers(ctx context.Context, target, authorities string) {
	for _, token := range []string{"", "hk_wrong"} {
		client := connect(ctx, target, authorities, token)
		_, err := client.Doc("people/ada").Get(ctx)
		code := status.Code(err)
		expect(code == codes.Unauthenticated || code == codes.PermissionDenied, "token %q: %v", token, err)
		check(client.Close())
	}
}

func main() {
	log.SetFlags(log.Lshortfile)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	client := connect(ctx, os.Args[1], os.Args[2], os.Args[3])
	documents(ctx, client)
	fmt.Println("documents: every kind of field, preconditions")
	queries(ctx, client)
	fmt.Println("queries: filters, orders, cursors, a collection group, 300 documents by their names")
	transactions(ctx, client)
	fmt.Println("transactions: 40 increments by four at once")
	listener(ctx, client)
	fmt.Println("listener: added, changed, removed")
	check(client.Close())
	strangers(ctx, os.Args[1], os.Args[2])
	fmt.Println("callers without a token or with a wrong one are refused")
}
