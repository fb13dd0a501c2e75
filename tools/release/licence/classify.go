package licence

import (
	"slices"
	"strings"
	"unicode"
)

// A kind is a license that can be recognized: by phrases that a text of it has, in this order,
// regardless of its author and its layout.
type kind struct {
	id        string
	sentences []string
	// without are phrases that make it another license.
	without []string
}

const (
	bsdGrant    = "redistribution and use in source and binary forms with or without modification are permitted provided that the following conditions are met"
	bsdSource   = "redistributions of source code must retain the above copyright notice this list of conditions and the following disclaimer"
	bsdBinary   = "redistributions in binary form must reproduce the above copyright notice this list of conditions and the following disclaimer in the documentation and or other materials provided with the distribution"
	bsdName     = "may be used to endorse or promote products derived from this software without specific prior written permission"
	bsdWarranty = "any express or implied warranties including but not limited to the implied warranties of merchantability and fitness for a particular purpose are disclaimed"
	bsdAd       = "all advertising materials mentioning features or use of this software must display the following acknowledgement"
)

// kinds are the licenses that Arbor may be shipped with: all of them require that their text is
// shipped, and none requires more. MPL-2.0 requires the source of its own files as well, which is
// public with its modules.
var kinds = []kind{
	{id: "Apache-2.0", sentences: []string{
		"apache license version 2 0 january 2004",
		"grant of copyright license subject to the terms and conditions of this license each contributor hereby grants to you a perpetual worldwide non exclusive no charge royalty free irrevocable copyright license",
		"grant of patent license subject to the terms and conditions of this license",
		"redistribution you may reproduce and distribute copies of the work or derivative works thereof in any medium",
		"disclaimer of warranty unless required by applicable law or agreed to in writing",
	}},
	// The notice that stands for the text, where that is in the same module.
	{id: "Apache-2.0", sentences: []string{
		"licensed under the apache license version 2 0 the license",
		"you may obtain a copy of the license at http www apache org licenses license 2 0",
	}, without: []string{"apache license version 2 0 january 2004"}},
	{id: "MIT", sentences: []string{
		"permission is hereby granted free of charge to any person obtaining a copy of this software and associated documentation files the software to deal in the software without restriction including without limitation the rights to use copy modify merge publish distribute sublicense and or sell copies of the software",
		"the above copyright notice and this permission notice shall be included in all copies or substantial portions of the software",
		"the software is provided as is without warranty of any kind",
	}},
	{id: "BSD-3-Clause", sentences: []string{bsdGrant, bsdSource, bsdBinary, bsdName, bsdWarranty}, without: []string{bsdAd}},
	{id: "BSD-2-Clause", sentences: []string{bsdGrant, bsdSource, bsdBinary, bsdWarranty}, without: []string{bsdAd, bsdName}},
	{id: "ISC", sentences: []string{
		"permission to use copy modify and or distribute this software for any purpose with or without fee is hereby granted provided that the above copyright notice and this permission notice appear in all copies",
		"the author disclaims all warranties with regard to this software",
	}},
	{id: "MPL-2.0", sentences: []string{
		"mozilla public license version 2 0",
		"all distribution of covered software in source code form including any modifications that you create or to which you contribute must be under the terms of this license",
		"covered software is provided under this license on an as is basis",
	}},
}

// strings that are in no text of these kinds, at any position: an addition can make a permissive
// license a restrictive one.
var never = []string{
	"commons clause", "affero", "server side public license", "business source license", "for non commercial", "noncommercial",
	"gnu lesser general public license version 3", "gnu general public license version 2", "gnu general public license version 3",
}

// Classify returns the licenses that a text has, by their SPDX identifiers, none if it has any that
// is not known or not allowed.
func Classify(text string) []string {
	words := normal(text)
	if slices.ContainsFunc(never, func(bad string) bool { return strings.Contains(words, bad) }) && !strings.Contains(words, "mozilla public license version 2 0") {
		return nil
	}
	var found []string
	for _, k := range kinds {
		if k.in(words) && !slices.Contains(found, k.id) {
			found = append(found, k.id)
		}
	}

	return found
}

func (k kind) in(words string) bool {
	if slices.ContainsFunc(k.without, func(s string) bool { return strings.Contains(words, s) }) {
		return false
	}
	for _, s := range k.sentences {
		_, rest, ok := strings.Cut(words, s)
		if !ok {
			return false
		}
		words = rest
	}

	return true
}

// normal is a text without anything that is different from one copy to the next:
// letters and digits in lower case, with single spaces.
func normal(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}
