package v1

import "strings"

// Annotations and labels of manifests and compositions. Those of manifests are
// removed before the manifest is applied. Those marked "falls back" default to the
// annotation of the composition.
const (
	prefix      = "eno.azure.io/"
	arborPrefix = "arbor-control.dev/"

	// AnnotationReconcileInterval is how often an object is reconciled even if it has
	// not changed; falls back.
	AnnotationReconcileInterval = prefix + "reconcile-interval"
	// AnnotationUseDefaultReconcileInterval selects the interval of the manager;
	// falls back.
	AnnotationUseDefaultReconcileInterval = prefix + "use-default-reconcile-interval"
	// AnnotationReplace replaces the whole object instead of applying it; falls back.
	AnnotationReplace = prefix + "replace"
	// AnnotationDisableUpdates creates an object and never updates it; falls back.
	AnnotationDisableUpdates = prefix + "disable-updates"
	// AnnotationDisableReconciliation disables reconciliation of an object; falls back.
	AnnotationDisableReconciliation = prefix + "disable-reconciliation"
	// AnnotationDeletionStrategy is orphan or foreground; falls back.
	AnnotationDeletionStrategy = prefix + "deletion-strategy"
	// AnnotationReadiness is a CEL expression about the object, self. So is each
	// annotation that begins with this name and a dash.
	AnnotationReadiness = prefix + "readiness"
	// AnnotationReadinessGroup is a number. An object is applied after the objects with
	// lower numbers are ready.
	AnnotationReadinessGroup = prefix + "readiness-group"
	// AnnotationDeletionGroup is a number. When the composition is deleted, the object is
	// deleted after the objects with lower numbers.
	AnnotationDeletionGroup = prefix + "deletion-group"
	// AnnotationOverrides are changes of the manifest that depend on the object.
	AnnotationOverrides = prefix + "overrides"
	// AnnotationFailOpen reports the object as reconciled although it could not be
	// delivered. Defaults to the flag --fail-open.
	AnnotationFailOpen = prefix + "fail-open"
	// AnnotationMigrateOwnership are the scopes in which fields are taken over from other
	// field managers, one per line or separated by semicolons. Defaults to the scopes of
	// the kind.
	AnnotationMigrateOwnership = prefix + "migrate-ownership"

	// AnnotationInputKey is on every input that is passed to a Synthesizer.
	AnnotationInputKey = prefix + "input-key"
	// AnnotationRevision on an input is its revision. All inputs with a revision must have
	// the same one before a synthesis is started.
	AnnotationRevision = prefix + "revision"
	// AnnotationSynthesizerGeneration on an input is the generation of the Synthesizer that
	// the input was written for. An older one delays the synthesis.
	AnnotationSynthesizerGeneration = prefix + "synthesizer-generation"
	// AnnotationCompositionGeneration on an input is the generation of the composition that
	// the input was written for. An older one delays the synthesis.
	AnnotationCompositionGeneration = prefix + "composition-generation"
	// AnnotationIgnoreSideEffects on a composition, or on one of its inputs, prevents
	// that a change of inputs triggers a new synthesis.
	AnnotationIgnoreSideEffects = prefix + "ignore-side-effects"
	// AnnotationForceResynthesis on a composition has the uuid of the synthesis that
	// must be replaced.
	AnnotationForceResynthesis = prefix + "force-resynthesis"
	// AnnotationForceDeleteWhenSymphonyGone deletes a composition without deleting its
	// objects if its Symphony does not exist.
	AnnotationForceDeleteWhenSymphonyGone = prefix + "forceDeleteWhenSymphonyGone"
	// AnnotationRecreationReason is on a namespace that was recreated because it was
	// deleted while it held compositions.
	AnnotationRecreationReason = prefix + "recreation-reason"
	// AnnotationOwner on a Synthesizer is the owner label of its metrics.
	AnnotationOwner = prefix + "owner"
	// LabelSymphonyDeleting is on compositions whose Symphony is being deleted.
	LabelSymphonyDeleting = prefix + "symphony-deleting"

	// LabelCompositionName on the pod of a synthesis is the name of the composition.
	LabelCompositionName = prefix + "composition-name"
	// LabelCompositionNamespace on the pod of a synthesis is the namespace of the
	// composition.
	LabelCompositionNamespace = prefix + "composition-namespace"
	// LabelSynthesizerName on the pod of a synthesis is the name of the Synthesizer.
	LabelSynthesizerName = prefix + "synthesizer-name"
	// LabelSynthesisUUID on the pod of a synthesis is the UUID of the synthesis.
	LabelSynthesisUUID = prefix + "synthesis-uuid"
	// AnnotationCompositionUID on the pod of a synthesis is the UID of the composition. The
	// labels of these pods are annotations too, since names can be longer than a label value.
	AnnotationCompositionUID = "arbor-control.dev/composition-uid"
	// AnnotationSynthesizerImage on the pod of a synthesis is the image of the Synthesizer.
	AnnotationSynthesizerImage = "arbor-control.dev/synthesizer-image"

	// Finalizer of compositions and slices.
	Finalizer = prefix + "cleanup"

	// AnnotationRollback on a composition names an earlier synthesis whose manifests
	// are delivered. While it is set, nothing is synthesized.
	AnnotationRollback = "arbor-control.dev/rollback-to"
	// AnnotationPrune is when the object of a manifest that a synthesis drops is
	// deleted. It is set on the composition for all objects, or on the manifest.
	AnnotationPrune = "arbor-control.dev/prune"
	// AnnotationReadinessMode is what makes an object ready for the readiness groups
	// after it, in addition to its expressions; falls back.
	AnnotationReadinessMode = "arbor-control.dev/readiness"
	// AnnotationMigrateMode on a manifest is how much of the scopes is taken over.
	AnnotationMigrateMode = "arbor-control.dev/migrate-ownership-mode"
	// AnnotationConfirmPrune on a composition has the digest of the condition
	// PruneBlocked, and confirms the deletion of these objects.
	AnnotationConfirmPrune = "arbor-control.dev/confirm-prune"
	// AnnotationSuspend on a composition suspends its delivery: nothing is written. Its
	// value is a time, a space and the reason.
	AnnotationSuspend = "arbor-control.dev/suspend"
	// AnnotationRestored on a ResourceSlice is set if delivery has created it again after
	// another client deleted it in spite of its finalizer.
	AnnotationRestored = "arbor-control.dev/restored"
	// AnnotationPruneFirst on a composition has the uuid of a synthesis, and the objects
	// that are deleted before the manifests of that synthesis are applied, each as
	// KIND[.GROUP]/[NAMESPACE/]NAME, separated by spaces.
	AnnotationPruneFirst = "arbor-control.dev/prune-first"
	// AnnotationReplaceOnConflict deletes and recreates an object if the API server rejects
	// a change because a field is immutable; falls back.
	AnnotationReplaceOnConflict = "arbor-control.dev/replace-on-conflict"
	// AnnotationResumeRollout on a Synthesizer has the generation whose rollout continues
	// no matter how many compositions fail.
	AnnotationResumeRollout = "arbor-control.dev/resume-rollout"
	// AnnotationSucceeds on a composition has the names of the compositions of its Symphony,
	// separated by spaces, that it replaces. They are kept until it has manifests.
	AnnotationSucceeds = "arbor-control.dev/succeeds"
	// AnnotationDependentsFrom on a composition has namespaces, separated by commas, or * for
	// all. With --delivery-scope=namespace, compositions of other namespaces that depend on it
	// delay its deletion only if they are in one of these.
	AnnotationDependentsFrom = "arbor-control.dev/dependents-from"
)

// IsSetting reports whether a label or annotation belongs to Eno or Arbor. It determines how
// the object that it is on is synthesized, delivered or deleted.
func IsSetting(key string) bool {
	return strings.HasPrefix(key, prefix) || strings.HasPrefix(key, arborPrefix)
}

// Values of AnnotationPrune.
const (
	// PruneLast deletes the object after every manifest of the synthesis was applied.
	PruneLast = "last"
	// PruneWithGroup deletes the object when the readiness group of the dropped manifest is
	// applied.
	PruneWithGroup = "with-group"
	// PruneFirst deletes the object at once, without waiting for manifests to be applied.
	PruneFirst = "first"
	// PruneNever orphans the object.
	PruneNever = "never"
)

// Values of AnnotationReadinessMode.
const (
	// ReadinessEno treats an object as ready once it is applied, unless it has expressions.
	ReadinessEno = "eno"
	// ReadinessKstatus treats an object as ready once it is healthy.
	ReadinessKstatus = "kstatus"
)

// Values of AnnotationMigrateMode.
const (
	// MigrateNeeded takes over the fields that must be removed.
	MigrateNeeded = "needed"
	// MigrateWhole takes over all fields in the scopes. Fields that the manifest does not
	// have are removed.
	MigrateWhole = "whole"
)

// Values of AnnotationDeletionStrategy.
const (
	DeletionOrphan     = "orphan"
	DeletionForeground = "foreground"
)

// Values of SimplifiedStatus.
const (
	StatusMissingSynthesizer    = "MissingSynthesizer"
	StatusSynthesizing          = "Synthesizing"
	StatusSynthesisBackoff      = "SynthesisBackoff"
	StatusMissingInputs         = "MissingInputs"
	StatusMismatchedInputs      = "MismatchedInputs"
	StatusWaitingOnDependencies = "WaitingOnDependencies"
	StatusPendingSynthesis      = "PendingSynthesis"
	StatusReconciling           = "Reconciling"
	StatusNotReady              = "NotReady"
	StatusReady                 = "Ready"
	StatusDeleting              = "Deleting"
	StatusWaitingOnDependents   = "WaitingOnDependents"
	StatusUnknown               = "Unknown"
)

// Conditions of a Composition, and their reasons.
const (
	// ConditionSynthesized is true if the current synthesis is up to date.
	ConditionSynthesized = "Synthesized"
	// ConditionReconciled is true if the cluster matches the current synthesis.
	ConditionReconciled = "Reconciled"
	// ConditionPruneBlocked is true while objects are not deleted because no user has
	// confirmed it. It is absent otherwise.
	ConditionPruneBlocked = "PruneBlocked"
	// ReasonEmptySynthesis is that of ConditionPruneBlocked for a synthesis without
	// manifests.
	ReasonEmptySynthesis = "EmptySynthesis"
	// ReasonPruneShare is that of ConditionPruneBlocked for a synthesis that would delete
	// a larger share of the objects than --prune-guard allows.
	ReasonPruneShare = "PruneShareExceeded"
	// ConditionDrifted is true while objects differ from the current synthesis and are
	// not corrected. It is absent otherwise.
	ConditionDrifted = "Drifted"
	// ReasonObjectsChanged is that of ConditionDrifted: other clients have changed or
	// deleted objects.
	ReasonObjectsChanged = "ObjectsChanged"
	// ConditionPruneWaiting is true while a manifest cannot be applied, probably because an
	// object must be deleted first that is deleted last. It is absent otherwise.
	ConditionPruneWaiting = "PruneWaiting"
	// ReasonApplyRejected is that of ConditionPruneWaiting.
	ReasonApplyRejected = "ApplyRejected"
	// ConditionSuspended is true while delivery writes nothing for the composition. It is
	// absent otherwise.
	ConditionSuspended = "Suspended"
	// ReasonRequested is that of ConditionSuspended.
	ReasonRequested = "Requested"
	// ConditionAccessDenied is true while objects are not written or deleted because the
	// ServiceAccount of the composition is missing or lacks permissions. It is absent
	// otherwise, and always with --delivery-scope=cluster.
	ConditionAccessDenied = "AccessDenied"
	// ReasonNoServiceAccount is that of ConditionAccessDenied if neither the composition nor
	// the manager names a ServiceAccount.
	ReasonNoServiceAccount = "NoServiceAccount"
	// ReasonImpersonationForbidden is that of ConditionAccessDenied if the manager has no
	// permission to impersonate the ServiceAccount.
	ReasonImpersonationForbidden = "ImpersonationForbidden"
	// ReasonDeletionForbidden is that of ConditionAccessDenied if an object must be deleted
	// and cannot be.
	ReasonDeletionForbidden = "DeletionForbidden"
	// ReasonOutOfScope is that of ConditionAccessDenied if the ServiceAccount has no
	// permission for an object in another namespace, or for a cluster-scoped object.
	ReasonOutOfScope = "OutOfScope"
	// ReasonWriteForbidden is that of ConditionAccessDenied if the ServiceAccount has no
	// permission for an object in the namespace of the composition.
	ReasonWriteForbidden = "WriteForbidden"
	// ConditionHealthy is whether the objects work now. It is unknown while some of them
	// are progressing, while the composition is suspended or being deleted, and if several
	// deliveries share it.
	ConditionHealthy = "Healthy"
	// ReasonHealthy is that of ConditionHealthy if all objects are healthy.
	ReasonHealthy = "Healthy"
	// ReasonProgressing is that of ConditionHealthy if an object is progressing and none is in
	// a worse state. The message names the object.
	ReasonProgressing = "Progressing"
	// ReasonDegraded is that of ConditionHealthy if an object is degraded and none has failed.
	// The message names the object.
	ReasonDegraded = "Degraded"
	// ReasonFailed is that of ConditionHealthy if an object has failed. The message names it.
	ReasonFailed = "Failed"
	// ReasonSuspended is that of ConditionHealthy while the composition is suspended. Health is
	// not assessed.
	ReasonSuspended = "Suspended"
	// ReasonDeleting is that of ConditionHealthy while the composition is being deleted. Health
	// is not assessed.
	ReasonDeleting = "Deleting"
	// ReasonShared is that of ConditionHealthy if no delivery has all manifests of the
	// composition. Health is not assessed.
	ReasonShared = "Shared"
	// ConditionReady is true if all objects are ready.
	ConditionReady = "Ready"
	// ConditionInputForbidden is true while the composition has bindings that are not allowed.
	// It is absent otherwise. The objects of such bindings are not read.
	ConditionInputForbidden = "InputForbidden"
	// ReasonNamespaceNotAllowed is that of ConditionInputForbidden for an object in a namespace
	// whose objects only a Synthesizer may bind. Until the binding is removed, nothing is
	// synthesized.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonClusterScoped is that of ConditionInputForbidden for a cluster-scoped object, which
	// only a Synthesizer may bind. Until the binding is removed, nothing is synthesized.
	ReasonClusterScoped = "ClusterScoped"
	// ReasonPinned is that of ConditionInputForbidden for an input whose object the Synthesizer
	// has pinned. The pinned object is used.
	ReasonPinned = "Pinned"
	// ConditionEnvForbidden is true while nothing is synthesized because of a variable in
	// synthesisEnv. It is absent otherwise.
	ConditionEnvForbidden = "EnvForbidden"
	// ReasonLoaderVariable is that of ConditionEnvForbidden: the variable makes programs load
	// other code.
	ReasonLoaderVariable = "LoaderVariable"

	// ConditionRolloutHalted of a Synthesizer is true while its rollout is halted because too
	// many compositions have failed. It is absent otherwise. With a dot and a namespace
	// appended, it is about the compositions of that namespace.
	ConditionRolloutHalted = "RolloutHalted"
	// ReasonTooManyFailures is that of ConditionRolloutHalted.
	ReasonTooManyFailures = "TooManyFailures"

	// ConditionSymphonyReady of a Symphony is true if all compositions that are not optional
	// are ready.
	ConditionSymphonyReady = "SymphonyReady"
)

// Reasons of a DependencyStatus.
const (
	ReasonDependencyNotFound  = "DependencyNotFound"
	ReasonDependencyNotReady  = "DependencyNotReady"
	ReasonDependentNotDeleted = "DependentNotDeleted"
	ReasonCircularDependency  = "CircularDependency"
)
