const kinds: Readonly<Record<string, string>> = {
  'core/v1.Namespace': 'A scope for the names of other objects.',
  'core/v1.ConfigMap': 'Configuration data for programs to read.',
  'core/v1.Secret': 'Data that only those who need it should see, such as keys and passwords.',
  'core/v1.ServiceAccount': 'An identity for programs rather than people.',
  'core/v1.Service': 'One stable address for a changing set of endpoints.',
  'core/v1.Endpoints': 'The addresses behind a Service, all in one object.',
  'core/v1.Pod': 'A group of containers that run together on one node.',
  'core/v1.Node': 'A machine that runs Pods.',
  'core/v1.Event': 'A report of something that happened to an object.',
  'core/v1.Binding': 'The assignment of a Pod to a node.',
  'discovery/v1.EndpointSlice': 'A part of the addresses behind a Service.',
  'events/v1.Event': 'A report of something that happened to an object.',
  'coordination/v1.Lease': 'A claim on a role or a sign of life, renewed again and again.',
  'rbac/v1.Role': 'A set of rights within one namespace.',
  'rbac/v1.ClusterRole': 'A set of rights in the whole cluster.',
  'rbac/v1.RoleBinding': 'Gives the rights of a role to subjects within one namespace.',
  'rbac/v1.ClusterRoleBinding': 'Gives the rights of a role to subjects in the whole cluster.',
  'certificates/v1.CertificateSigningRequest': 'Asks a signer for a certificate.',
  'authentication/v1.TokenReview': 'Asks who the owner of a token is.',
  'authentication/v1.TokenRequest': 'Asks for a token of a service account.',
  'authentication/v1.SelfSubjectReview': 'Asks who the sender of the request is.',
  'authorization/v1.SubjectAccessReview': 'Asks whether somebody may do something.',
  'authorization/v1.LocalSubjectAccessReview':
    'Asks whether somebody may do something in one namespace.',
  'authorization/v1.SelfSubjectAccessReview': 'Asks whether the sender may do something.',
  'authorization/v1.SelfSubjectRulesReview':
    'Asks for everything that the sender may do in one namespace.',
  'meta/v1.ObjectMeta': 'What every object has: its name, its place and its history.',
  'meta/v1.ListMeta': 'What every list has: the state that it shows and where it goes on.',
  'meta/v1.Status': 'The outcome of a request that does not return an object.',
  'meta/v1.DeleteOptions': 'How an object is deleted.',
  'meta/v1.WatchEvent': 'One change of a watched object.',
  'meta/v1.LabelSelector': 'Selects objects by their labels; all conditions must hold.',
  'meta/v1.OwnerReference': 'Names the object that this one belongs to and disappears with.',
}

/** Fields that mean the same wherever they are. */
const commonFields: Readonly<Record<string, string>> = {
  apiVersion: 'Group and version of the kind, for example v1 or rbac.authorization.k8s.io/v1.',
  kind: 'What the object is.',
  metadata: 'Name, namespace, labels and what else all objects have.',
  spec: 'What is wanted.',
  status: 'What is the case, as the server and its controllers see it.',
  items: 'The objects of the list.',
}

const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'meta/v1.ObjectMeta': {
    name: 'Unique among the objects of its kind in its namespace; cannot be changed.',
    generateName: 'Start of a name that the server completes when name is empty.',
    namespace: 'The namespace that the object is in; cannot be changed.',
    uid: 'Unique over all time; set by the server.',
    resourceVersion: 'Changes with every write; send it back to be told of a lost update.',
    generation: 'Counts the changes of what is wanted; set by the server.',
    creationTimestamp: 'When the object was created; set by the server.',
    deletionTimestamp:
      'When deletion was asked for; the object stays until its finalizers are gone.',
    deletionGracePeriodSeconds: 'How long the object may take to end; set by the server.',
    labels: 'Keys and values to select objects by.',
    annotations: 'Keys and values for people and tools; nothing is selected by them.',
    ownerReferences: 'The objects that this one belongs to.',
    finalizers: 'Who must still clean up before the object can go.',
    managedFields: 'Who set which field.',
  },
  'core/v1.ConfigMap': {
    data: 'Keys and text.',
    binaryData: 'Keys and bytes in base64.',
    immutable: 'When true, the data cannot be changed any more.',
  },
  'core/v1.Secret': {
    data: 'Keys and bytes in base64.',
    stringData: 'Keys and text; written into data, never read back.',
    immutable: 'When true, the data cannot be changed any more.',
    type: 'Says which keys are expected.',
  },
  'rbac/v1.Role': { rules: 'What may be done to what.' },
  'rbac/v1.ClusterRole': {
    rules: 'What may be done to what.',
    aggregationRule: 'Selects other ClusterRoles whose rules this one takes over.',
  },
  'rbac/v1.RoleBinding': { subjects: 'Who gets the rights.', roleRef: 'Which rights.' },
  'rbac/v1.ClusterRoleBinding': { subjects: 'Who gets the rights.', roleRef: 'Which rights.' },
  'discovery/v1.EndpointSlice': {
    addressType: 'What all addresses of the slice are.',
    endpoints: 'The addresses with their conditions.',
    ports: 'The ports that every endpoint has.',
  },
  'core/v1.Endpoints': { subsets: 'Addresses that share the same ports.' },
}

/** One sentence about a struct, in our own words; most structs go without. */
export const kindDescription = (structName: string): string | undefined => kinds[structName]

const isKind = (structName: string): boolean => structName in kinds || structName.endsWith('List')

/** One sentence about a field, in our own words; most fields go without. */
export const fieldDescription = (structName: string, jsonName: string): string | undefined =>
  fields[structName]?.[jsonName] ?? (isKind(structName) ? commonFields[jsonName] : undefined)
