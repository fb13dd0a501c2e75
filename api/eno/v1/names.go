package v1

import "strings"

// Annotations and labels of manifests and compositions. Those of manifests are
// read and then left out of what is applied; the ones that are marked fall back
// to those of the composition.
const (
	prefix      = "eno.azure.io/"
	arborPrefix = "arbor-control.dev/"

	// AnnotationReconcileInterval is how often an object is looked at even if
	// nobody touched it; falls back.
	AnnotationReconcileInterval = prefix + "reconcile-interval"
	// AnnotationUseDefaultReconcileInterval asks for the interval of the manager;
	// falls back.
	AnnotationUseDefaultReconcileInterval = prefix + "use-default-reconcile-interval"
	// AnnotationReplace has an object written as a whole; falls back.
	AnnotationReplace = prefix + "replace"
	// AnnotationDisableUpdates has an object made once and never changed; falls
	// back.
	AnnotationDisableUpdates = prefix + "disable-updates"
	// AnnotationDisableReconciliation has an object left alone; falls back.
	AnnotationDisableReconciliation = prefix + "disable-reconciliation"
	// AnnotationDeletionStrategy is orphan or foreground; falls back.
	AnnotationDeletionStrategy = prefix + "deletion-strategy"
	// AnnotationReadiness is a CEL expression about the object, self; so is each
	// annotation that begins with it and a dash.
	AnnotationReadiness = prefix + "readiness"
	// AnnotationReadinessGroup is after which objects this one is made.
	AnnotationReadinessGroup = prefix + "readiness-group"
	// AnnotationDeletionGroup is after which objects this one is deleted.
	AnnotationDeletionGroup = prefix + "deletion-group"
	// AnnotationOverrides are changes of the manifest that depend on the object.
	AnnotationOverrides = prefix + "overrides"
	// AnnotationFailOpen has errors passed over; falls back.
	AnnotationFailOpen = prefix + "fail-open"
	// AnnotationMigrateOwnership has the scopes whose fields are taken over from
	// others, one per line or separated by semicolons, instead of the default one of
	// the kind.
	AnnotationMigrateOwnership = prefix + "migrate-ownership"

	// AnnotationInputKey is on every input that a synthesizer is given.
	AnnotationInputKey = prefix + "input-key"
	// AnnotationRevision and the two generations are on inputs, and hold back a
	// synthesis until they fit.
	AnnotationRevision              = prefix + "revision"
	AnnotationSynthesizerGeneration = prefix + "synthesizer-generation"
	AnnotationCompositionGeneration = prefix + "composition-generation"
	// AnnotationIgnoreSideEffects on a composition, or on one of its inputs: a
	// change of inputs is no reason for a new synthesis.
	AnnotationIgnoreSideEffects = prefix + "ignore-side-effects"
	// AnnotationForceResynthesis on a composition has the uuid of the synthesis that
	// is to be replaced.
	AnnotationForceResynthesis = prefix + "force-resynthesis"
	// AnnotationForceDeleteWhenSymphonyGone lets a composition go without its
	// objects, if its Symphony is gone.
	AnnotationForceDeleteWhenSymphonyGone = prefix + "forceDeleteWhenSymphonyGone"
	// AnnotationRecreationReason is on a namespace that was made again because
	// something was left in it when it went.
	AnnotationRecreationReason = prefix + "recreation-reason"
	// AnnotationOwner on a synthesizer says whom its metrics are counted for.
	AnnotationOwner = prefix + "owner"
	// LabelSymphonyDeleting is on compositions whose Symphony is being deleted.
	LabelSymphonyDeleting = prefix + "symphony-deleting"

	// LabelCompositionName and the next three are on the pods of syntheses.
	LabelCompositionName      = prefix + "composition-name"
	LabelCompositionNamespace = prefix + "composition-namespace"
	LabelSynthesizerName      = prefix + "synthesizer-name"
	LabelSynthesisUUID        = prefix + "synthesis-uuid"
	// AnnotationCompositionUID and AnnotationSynthesizerImage are on them too, and
	// the labels once more as annotations: names can be longer than a label.
	AnnotationCompositionUID   = "arbor-control.dev/composition-uid"
	AnnotationSynthesizerImage = "arbor-control.dev/synthesizer-image"

	// Finalizer of compositions and slices.
	Finalizer = prefix + "cleanup"

	// AnnotationRollback on a composition names an earlier synthesis whose manifests
	// are to be used. As long as it is there, nothing is synthesized.
	AnnotationRollback = "arbor-control.dev/rollback-to"
	// AnnotationPrune is when the object of a manifest that a synthesis drops is
	// deleted: on the composition for all, or on the manifest.
	AnnotationPrune = "arbor-control.dev/prune"
	// AnnotationReadinessMode is what makes an object count as ready for the readiness
	// groups after it, next to its expressions; falls back.
	AnnotationReadinessMode = "arbor-control.dev/readiness"
	// AnnotationMigrateMode on a manifest is how much of the scopes is taken over.
	AnnotationMigrateMode = "arbor-control.dev/migrate-ownership-mode"
	// AnnotationConfirmPrune on a composition has the digest of the condition
	// PruneBlocked, and lets these objects be deleted.
	AnnotationConfirmPrune = "arbor-control.dev/confirm-prune"
	// AnnotationSuspend on a composition has delivery write nothing for it. Its value is a
	// time, a space and the reason.
	AnnotationSuspend = "arbor-control.dev/suspend"
	// AnnotationRestored on a ResourceSlice is set if delivery has created it again after
	// another client deleted it in spite of its finalizer.
	AnnotationRestored = "arbor-control.dev/restored"
	// AnnotationPruneFirst on a composition has the uuid of a synthesis, and the objects
	// that are deleted before the manifests of that synthesis are applied, each as
	// KIND[.GROUP]/[NAMESPACE/]NAME, separated by spaces.
	AnnotationPruneFirst = "arbor-control.dev/prune-first"
	// AnnotationReplaceOnConflict has an object deleted and created again if the API server
	// rejects a change because a field is immutable; falls back.
	AnnotationReplaceOnConflict = "arbor-control.dev/replace-on-conflict"
	// AnnotationResumeRollout on a Synthesizer has the generation whose rollout goes on
	// however many compositions fail.
	AnnotationResumeRollout = "arbor-control.dev/resume-rollout"
	// AnnotationSucceeds on a composition has the names of the compositions of its Symphony,
	// separated by spaces, that it was created in place of. They are kept until it has
	// manifests.
	AnnotationSucceeds = "arbor-control.dev/succeeds"
	// AnnotationDependentsFrom on a composition has namespaces, separated by commas, or * for
	// all. With --delivery-scope=namespace, compositions of other namespaces that depend on it
	// delay its deletion only if they are in one of these.
	AnnotationDependentsFrom = "arbor-control.dev/dependents-from"
)

// IsSetting reports whether a label or annotation is one of those that Eno or Arbor read. It
// decides how the object that it is on is synthesized, delivered or deleted.
func IsSetting(key string) bool {
	return strings.HasPrefix(key, prefix) || strings.HasPrefix(key, arborPrefix)
}

// Values of AnnotationPrune.
const (
	// PruneLast is when every manifest of the synthesis has been applied.
	PruneLast = "last"
	// PruneWithGroup is when the readiness group of the dropped manifest is applied.
	PruneWithGroup = "with-group"
	// PruneFirst is at once.
	PruneFirst = "first"
	// PruneNever leaves the object behind.
	PruneNever = "never"
)

// Values of AnnotationReadinessMode.
const (
	// ReadinessEno has an object be ready once it is applied, unless it has expressions.
	ReadinessEno = "eno"
	// ReadinessKstatus has an object be ready once it is healthy.
	ReadinessKstatus = "kstatus"
)

// Values of AnnotationMigrateMode.
const (
	// MigrateNeeded takes over what has to be removed.
	MigrateNeeded = "needed"
	// MigrateWhole takes over everything in the scopes. What the manifest does not name
	// is removed.
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

// Conditions of a Composition. All are good when they are true.
const (
	// ConditionSynthesized : the current synthesis is of the composition as it is.
	ConditionSynthesized = "Synthesized"
	// ConditionReconciled : the cluster agrees with the current synthesis.
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
	// ServiceAccount of the composition has no permission for it, or there is none. It is
	// absent otherwise, and always with --delivery-scope=cluster.
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
	// permission for an object outside of the namespace of the composition, or without one.
	ReasonOutOfScope = "OutOfScope"
	// ReasonWriteForbidden is that of ConditionAccessDenied if the ServiceAccount has no
	// permission for an object in the namespace of the composition.
	ReasonWriteForbidden = "WriteForbidden"
	// ConditionHealthy is whether the objects work now. It is unknown while some of them
	// are progressing, while the composition is suspended or being deleted, and if several
	// deliveries share it.
	ConditionHealthy = "Healthy"
	// ReasonHealthy is that of ConditionHealthy when all objects work. The others are of
	// the object in the worst state, which the message names.
	ReasonHealthy     = "Healthy"
	ReasonProgressing = "Progressing"
	ReasonDegraded    = "Degraded"
	ReasonFailed      = "Failed"
	// ReasonSuspended, ReasonDeleting and ReasonShared are those of ConditionHealthy while
	// nothing is judged. Shared is a composition if no delivery has all of its manifests.
	ReasonSuspended = "Suspended"
	ReasonDeleting  = "Deleting"
	ReasonShared    = "Shared"
	// ConditionReady : all of its objects are ready.
	ConditionReady = "Ready"
	// ConditionInputForbidden is true while the composition has bindings that it may not have.
	// It is absent otherwise. Nothing is read for such a binding.
	ConditionInputForbidden = "InputForbidden"
	// ReasonNamespaceNotAllowed and ReasonClusterScoped are those of ConditionInputForbidden
	// for objects that only a Synthesizer may bind. Nothing is synthesized until then.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	ReasonClusterScoped       = "ClusterScoped"
	// ReasonPinned is that of ConditionInputForbidden for an input whose object the Synthesizer
	// has pinned. The pinned object is used.
	ReasonPinned = "Pinned"
	// ConditionEnvForbidden is true while nothing is synthesized because of a variable in
	// synthesisEnv. It is absent otherwise.
	ConditionEnvForbidden = "EnvForbidden"
	// ReasonLoaderVariable is that of ConditionEnvForbidden: the variable makes programs load
	// other code.
	ReasonLoaderVariable = "LoaderVariable"

	// ConditionRolloutHalted of a Synthesizer is true while no further composition is
	// resynthesized for its generation because too many have failed. It is absent otherwise.
	// With a dot and a namespace, it is about the compositions of that namespace.
	ConditionRolloutHalted = "RolloutHalted"
	// ReasonTooManyFailures is that of ConditionRolloutHalted.
	ReasonTooManyFailures = "TooManyFailures"

	// ConditionSymphonyReady of a Symphony : all compositions that count are ready.
	ConditionSymphonyReady = "SymphonyReady"
)

// Reasons of a DependencyStatus.
const (
	ReasonDependencyNotFound  = "DependencyNotFound"
	ReasonDependencyNotReady  = "DependencyNotReady"
	ReasonDependentNotDeleted = "DependentNotDeleted"
	ReasonCircularDependency  = "CircularDependency"
)
