package identity

// A Ref says where to find an object, for people and programs that read the
// output. Two of them can be about one object: compare identities.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// RefOf reads where an object is.
func RefOf(obj map[string]any) Ref {
	text := func(from map[string]any, key string) string {
		s, _ := from[key].(string)

		return s
	}
	metadata, _ := obj["metadata"].(map[string]any)

	return Ref{APIVersion: text(obj, "apiVersion"), Kind: text(obj, "kind"), Namespace: text(metadata, "namespace"), Name: text(metadata, "name")}
}

// Path is namespace/name, or what of it is known.
func (r Ref) Path() string {
	if r.Namespace == "" {
		return r.Name
	}

	return r.Namespace + "/" + r.Name
}

// Identity returns what the object is compared by.
func (r Ref) Identity() Identity {
	return New(r.APIVersion, r.Kind, r.Namespace, r.Name)
}

// String names the object in messages.
func (r Ref) String() string {
	if r.Name == "" {
		return r.Kind
	}

	return r.Identity().String()
}
