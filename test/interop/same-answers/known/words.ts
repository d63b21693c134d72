import { isMessage, isOutcome, type KnownDifference, shown, text } from './known-difference.ts'

const withoutExcerpt = (message: unknown): string => text(message).replace(/ \([^(]*\)$/s, '')
const goTypes =
  /Go value of type (struct|\[\]handlers|map\[string\])|&user\.DefaultInfo|map\[[^\]]*:|unrecognized type|cannot restore slice|strconv\.|"managedFields\\?"/

/** Messages, and which of them are whose fault. */
export const words: readonly KnownDifference[] = [
  {
    what: 'A body that cannot be read',
    theirs: 'the message quotes its beginning',
    ours: 'the message has its size',
    why: 'it may be a credential, and messages end up in logs',
    matches: (difference) =>
      isMessage(difference) &&
      / \(\d+ bytes\)$/.test(text(difference.ours)) &&
      withoutExcerpt(difference.ours) === withoutExcerpt(difference.theirs),
  },
  {
    what: 'A patch that leads to an invalid object',
    theirs: 'the message quotes the whole object',
    ours: 'the message says `the patched object`',
    why: 'whoever may patch a Secret need not be allowed to read it',
    matches: (difference) =>
      isMessage(difference) &&
      text(difference.ours).includes('Invalid value: "the patched object"'),
  },
  {
    what: 'A kind that nobody knows',
    theirs: 'the message ends with `in scheme "pkg/runtime/scheme.go:111"`',
    ours: 'without that',
    why: 'it is a line in the source of Kubernetes',
    matches: (difference) =>
      isMessage(difference) &&
      text(difference.theirs) === `${text(difference.ours)} in scheme "pkg/runtime/scheme.go:111"`,
  },
  {
    what: 'An update of an object that was made anew meanwhile',
    theirs: 'the message has the key in etcd',
    ours: 'the message has the two uids only',
    why: 'where an object is stored is of no concern to clients',
    matches: (difference) =>
      isMessage(difference) && text(difference.theirs).includes('StorageError: invalid object'),
  },
  {
    what: 'Messages with types, structs or functions of Go in them',
    theirs: 'for example `strconv.ParseInt: parsing "x": invalid syntax`',
    ours: 'for example `query parameter limit must be a whole number, not "x"`',
    why: 'they are read by people who need not know Go',
    matches: (difference) =>
      isMessage(difference) &&
      goTypes.test(text(difference.theirs)) &&
      difference.ours !== undefined,
  },
  {
    what: 'Mistakes of the client that Kubernetes answers with a 500',
    theirs:
      '500: a `resourceVersion` that is no number or is set on create, a strategic merge patch that makes no sense',
    ours: '400 or 409',
    why: 'a 500 is retried and wakes people up',
    matches: (difference) =>
      isOutcome(difference) &&
      (mistakes.test(difference.case) || /[?&]resourceVersion=(x|-1)$/.test(difference.request)),
  },
  {
    what: 'A JSON patch that does not apply',
    theirs: '`the server rejected our request due to an error in our request`',
    ours: 'the same words, and after them which operation failed and why',
    why: 'so that it can be mended',
    matches: (difference) =>
      isMessage(difference) &&
      text(difference.ours).startsWith(`${text(difference.theirs)}: operation`) &&
      text(difference.theirs) !== '',
  },
  {
    what: 'A `continue` value that is garbage',
    theirs: 'the message says what its decoder thought of it',
    ours: 'the message says that it does not come from this server',
    why: 'it is opaque to clients',
    matches: (difference) =>
      isMessage(difference) && text(difference.ours).endsWith('it does not come from this server'),
  },
  {
    what: 'YAML that cannot be read',
    theirs: 'the words of a Go library',
    ours: 'the words of a JavaScript library, with the line',
    why: 'they know best what they stumbled over',
    matches: (difference) =>
      isMessage(difference) && /: yaml: line \d+: /.test(text(difference.ours)),
  },
  {
    what: 'A SubjectAccessReview that is wrong',
    theirs: 'the message begins with `.authorization.k8s.io`',
    ours: 'with the kind, which is in `details` too',
    why: 'Kubernetes forgets it',
    matches: ({ at, ours, theirs }) =>
      (at === 'body.details' &&
        shown(ours).includes('AccessReview"') &&
        !shown(theirs).includes('"kind"')) ||
      (at === 'body.message' &&
        text(ours).endsWith(text(theirs)) &&
        text(theirs).startsWith('.authorization')),
  },
  {
    what: 'Rights to impersonate that are missing',
    theirs: 'asks for the verbs of constrained impersonation, and its message names those',
    ours: 'asks for the verb `impersonate` on users, groups and service accounts',
    why: 'whoever has neither kind of right is told of the one that most clusters use',
    matches: ({ case: name, at }) =>
      name === 'acting without the right to' && /^body\.(message|details)/.test(at),
  },
]

/** Cases that are such mistakes; the rest of their answers follows from the code. */
const mistakes =
  /^(a version that is no number|a negative version|a resourceVersion)$|: (an image without a name|an unknown directive|text where an element belongs)$/
