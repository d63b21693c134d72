import type { Observation } from './contest.ts'

/** What of an observation an entry is about. */
type Part = Partial<Observation>

/** A difference to kubectl that is meant, in words for users of the library. */
export interface KnownDifference {
  /** What one notices. */
  readonly what: string
  readonly kubectl: string
  readonly sallyport: string
  readonly why: string
  /** The cases that show it, and what both do there. */
  readonly cases: readonly string[]
  readonly theirs: Part
  readonly ours: Part
}

const answered: Part = { outcome: 'answered' }
const unreadable: Part = { outcome: 'answer cannot be read' }

/** Every purposeful difference; the table of `docs/features/credentials.md` is made of it. */
export const knownDifferences: readonly KnownDifference[] = [
  {
    what: 'A 401',
    kubectl: 'runs the plugin again and hands the 401 to the caller',
    sallyport: 'runs it again and replays the request once',
    why: 'the caller can do nothing better',
    cases: ['refused: the first credential'],
    theirs: { outcome: 'unauthorized', runs: 2, requests: 1 },
    ours: { ...answered, runs: 2, requests: 2 },
  },
  {
    what: 'A plugin that fails, for the next requests',
    kubectl: 'runs it again for every request',
    sallyport: '`BACKING_OFF` for a time that grows from 1 s to 30 s',
    why: 'a broken login must not start processes without end',
    cases: ['four requests: the plugin fails'],
    theirs: { outcome: 'plugin failed', runs: 5, requests: 0 },
    ours: { outcome: 'plugin failed', runs: 1, requests: 0 },
  },
  {
    what: 'An answer that has expired already',
    kubectl: 'is used once; the plugin runs for each request and each connection',
    sallyport: 'is used for 5 s',
    why: 'with a wrong clock one request would cost two runs, and a certificate would close its own connection',
    cases: ['four requests: expired'],
    theirs: { ...answered, runs: 5, requests: 4 },
    ours: { ...answered, runs: 1, requests: 4 },
  },
  {
    what: 'The same, for a single request',
    kubectl: 'two runs',
    sallyport: 'one run',
    why: 'as above',
    cases: ['answer: expiry in the past'],
    theirs: { ...answered, runs: 2, requests: 1 },
    ours: { ...answered, runs: 1, requests: 1 },
  },
  {
    what: 'A plugin that hangs',
    kubectl: 'waits for ever',
    sallyport: '`TIMEOUT` after 60 s, which can be changed; no limit while a user is asked',
    why: 'a server has nobody who presses Ctrl-C',
    cases: ['stand-in 8: hangs-without-terminal'],
    theirs: { outcome: 'waits for ever' },
    ours: { outcome: 'plugin ended after its time' },
  },
  {
    what: 'A plugin that leaves a process behind which holds its stdout',
    kubectl: 'waits for that process',
    sallyport: 'takes the answer when the plugin itself has ended',
    why: 'agents and keyrings do that',
    cases: ['stand-in 14: leaves-daemon'],
    theirs: { outcome: 'waits for ever', requests: 0 },
    ours: { ...answered, runs: 1, requests: 1 },
  },
  {
    what: 'A plugin that prints more than 1 MiB',
    kubectl: 'keeps it all in memory',
    sallyport: '`OUTPUT_TOO_LARGE`, and the plugin is ended',
    why: 'no credential is that long',
    cases: ['stand-in 13: flood'],
    theirs: { outcome: 'answer in another version', requests: 0 },
    ours: { outcome: 'plugin ended for its flood', requests: 0 },
  },
  {
    what: '`apiVersion` v1alpha1',
    kubectl: 'refused since 1.24',
    sallyport:
      'works, as Kubernetes shipped it and as the proposal had it (`ExecCredentials`, `ExecInfo`)',
    why: 'the proposal is what this feature began with',
    cases: ['section: apiVersion v1alpha1'],
    theirs: { outcome: 'kubeconfig refused', runs: 0 },
    ours: { ...answered, runs: 1 },
  },
  {
    what: 'An answer in a version that nobody knows',
    kubectl: 'cannot be decoded',
    sallyport: '`VERSION_MISMATCH`',
    why: 'it names what is wrong',
    cases: [
      'answer: apiVersion is a number',
      'answer: a version that nobody knows',
      'answer: a version of another group',
    ],
    theirs: unreadable,
    ours: { outcome: 'answer in another version' },
  },
  {
    what: 'Two YAML documents as an answer',
    kubectl: 'the first one counts',
    sallyport: '`DECODE`',
    why: 'nobody can know which one was meant',
    cases: ['answer: two YAML documents'],
    theirs: answered,
    ours: unreadable,
  },
  {
    what: 'YAML aliases in an answer',
    kubectl: 'followed',
    sallyport: '`DECODE`',
    why: 'no credential needs them, and a few lines of them can fill all memory',
    cases: ['answer: YAML with an alias'],
    theirs: answered,
    ours: unreadable,
  },
  {
    what: 'A `spec` of a wrong type in an answer',
    kubectl: 'cannot be decoded',
    sallyport: 'not looked at',
    why: 'only the status counts',
    cases: ['answer: spec of a wrong type'],
    theirs: unreadable,
    ours: answered,
  },
  {
    what: 'A token with characters beyond ASCII, spaces or tabs',
    kubectl: 'sent as it is',
    sallyport: '`TOKEN_INVALID`',
    why: 'clients do not agree on the bytes, and RFC 6750 allows none of them',
    cases: [
      'answer: token beyond ASCII',
      'answer: token with a tab',
      'answer: token with spaces round it',
    ],
    theirs: answered,
    ours: { outcome: 'token cannot be sent', requests: 0 },
  },
  {
    what: '`expirationTimestamp` with an offset of 24 hours or an hour of one digit',
    kubectl: 'accepted',
    sallyport: '`DECODE`',
    why: 'RFC 3339 knows neither',
    cases: [
      'answer: expiry with an offset of 24 hours',
      'answer: expiry with an hour of one digit',
    ],
    theirs: answered,
    ours: unreadable,
  },
  {
    what: 'A script whose interpreter is missing',
    kubectl: '`no such file or directory`, though the script is there',
    sallyport: '`NOT_EXECUTABLE`, which names the interpreter',
    why: 'so that one looks for the right file',
    cases: ['command: a script whose interpreter is missing'],
    theirs: { outcome: 'plugin not found' },
    ours: { outcome: 'plugin cannot be run' },
  },
  {
    what: '`client-key` without `client-certificate`',
    kubectl: 'ignored',
    sallyport: 'the kubeconfig is refused',
    why: 'half a key pair is a mistake, whichever half',
    cases: ['beside exec: client key without its certificate'],
    theirs: { ...answered, runs: 1 },
    ours: { outcome: 'kubeconfig refused', runs: 0 },
  },
  {
    what: 'A user without any credential',
    kubectl: 'asks for a user name and a password',
    sallyport: 'sends the request without a credential',
    why: 'a library does not ask; the server says who may be anonymous',
    cases: ['without exec: nothing'],
    theirs: { outcome: 'asks for a user name', requests: 0 },
    ours: { ...answered, requests: 1, authorization: '-' },
  },
  {
    what: 'A `tokenFile` without a token in it',
    kubectl: 'counts as no credential: asks for a user name',
    sallyport: '`FILE`',
    why: 'it says what is wrong, and never becomes an anonymous request',
    cases: ['without exec: tokenFile that is empty'],
    theirs: { outcome: 'asks for a user name', requests: 0 },
    ours: { outcome: 'file not usable', requests: 0 },
  },
]
