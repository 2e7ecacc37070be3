// Command judge prints what the server of EKS says of tokens: empty, or why it refuses one.
//
// The file has a JSON list of tokens, each with the cluster that it is shown to and the credentials
// that it should be signed with; printed is a JSON list of as many verdicts. STS is played by code
// that signs the question again, with AWS's own signer, and compares.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go/aws/credentials"
	v4 "github.com/aws/aws-sdk-go/aws/signer/v4"
	"sigs.k8s.io/aws-iam-authenticator/pkg/token"
)

type shown struct {
	Token        string `json:"token"`
	Cluster      string `json:"cluster"`
	Partition    string `json:"partition"`
	Region       string `json:"region"`
	AccessKey    string `json:"accessKey"`
	Secret       string `json:"secret"`
	SessionToken string `json:"sessionToken"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one file")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var all []shown
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	said := make([]string, 0, len(all))
	for _, one := range all {
		// The verifier's client has no transport of its own.
		http.DefaultTransport = sts{one}
		_, err := token.NewVerifier(one.Cluster, one.Partition, one.Region).Verify(one.Token)
		if err != nil {
			said = append(said, err.Error())
		} else {
			said = append(said, "")
		}
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

// sts answers GetCallerIdentity of one principal.
type sts struct{ of shown }

func (s sts) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	status, body := http.StatusForbidden, "SignatureDoesNotMatch"
	again, err := s.signature(request, query)
	if err != nil {
		return nil, err
	}
	if again == query.Get("X-Amz-Signature") {
		status = http.StatusOK
		body = `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{` +
			`"Account":"123456789012","UserId":"AROAEXAMPLE:dovetail",` +
			`"Arn":"arn:aws:sts::123456789012:assumed-role/launch/dovetail"}}}`
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    request,
	}, nil
}

func (s sts) signature(request *http.Request, query url.Values) (string, error) {
	scope := strings.Split(query.Get("X-Amz-Credential"), "/")
	if len(scope) != 5 {
		return "", fmt.Errorf("X-Amz-Credential: %q", query.Get("X-Amz-Credential"))
	}
	when, err := time.Parse("20060102T150405Z", query.Get("X-Amz-Date"))
	if err != nil {
		return "", err
	}
	expires, err := strconv.Atoi(query.Get("X-Amz-Expires"))
	if err != nil {
		return "", err
	}
	plain := url.Values{"Action": query["Action"], "Version": query["Version"]}
	signed := *request.URL
	signed.RawQuery = plain.Encode()
	fresh, err := http.NewRequest(http.MethodGet, signed.String(), nil)
	if err != nil {
		return "", err
	}
	fresh.Header.Set("x-k8s-aws-id", request.Header.Get("x-k8s-aws-id"))
	signer := v4.NewSigner(
		credentials.NewStaticCredentials(s.of.AccessKey, s.of.Secret, s.of.SessionToken),
	)
	// The Region of the scope is the one of STS, not the cluster's.
	lifetime := time.Duration(expires) * time.Second
	if _, err := signer.Presign(fresh, nil, "sts", scope[2], lifetime, when); err != nil {
		return "", err
	}
	return fresh.URL.Query().Get("X-Amz-Signature"), nil
}
