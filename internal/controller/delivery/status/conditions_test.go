package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// TestCorrectionPatch has a correction without a field manager follow one with a field
// manager, which must not stay.
func TestCorrectionPatch(t *testing.T) {
	c := enov1.Correction{Time: metav1.NewTime(time.Unix(1000, 0)), Deleted: true, APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "a"}
	got, err := correctionPatch("u", c)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"uid":"u"},"status":{"lastCorrection":{"apiVersion":"v1","deleted":true,"kind":"ConfigMap","manager":null,"name":"a","namespace":"n","time":"1970-01-01T00:16:40Z"}}}`
	if string(got) != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
}
