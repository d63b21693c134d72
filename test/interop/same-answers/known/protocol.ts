import { isOutcome, type KnownDifference, shown, text } from './known-difference.ts'

const isStatus = (value: unknown): boolean => shown(value).includes('"kind":"Status"')
const isNotFoundText = (value: unknown): boolean =>
  value === '' || shown(value).includes('404 page not found')

/** Paths, headers, media types and documents. */
export const protocol: readonly KnownDifference[] = [
  {
    what: 'Answers in protobuf',
    theirs: 'sent to whoever accepts them',
    ours: 'JSON to whoever accepts that too, else 406',
    why: 'objects are kept as the JSON that is served; requests may be protobuf',
    matches: ({ case: name }) => name.startsWith('Accept application/vnd.kubernetes.protobuf'),
  },
  {
    what: '406 and 415',
    theirs: 'the message names media types, protobuf among them, or only the code',
    ours: 'the message names the media types that are served here',
    why: 'so that one can ask for the right one',
    matches: ({ at, ours, theirs, case: name }) =>
      (at === 'body.message' && text(ours).includes('media types')) ||
      (at === 'headers.content-type' && name === 'forms of version 2' && theirs === undefined) ||
      (at === 'body.details' &&
        shown(theirs) === '{}' &&
        /^Accept|an Accept that|an unsupported type|in other forms/.test(name)),
  },
  {
    what: '`Accept` with ranges and weights',
    theirs: '`application/*` is a 406, `application/json;q=0` is JSON',
    ours: 'the other way round',
    why: 'RFC 9110 says so',
    matches: ({ case: name }) => /^Accept application\/(\*|json;q=0)$/.test(name),
  },
  {
    what: 'Tables and metadata in `v1beta1`',
    theirs: 'served',
    ours: '406',
    why: '`v1` is there since Kubernetes 1.15',
    matches: ({ case: name }) => /^Accept .*;v=v1beta1;g=meta\.k8s\.io$/.test(name),
  },
  {
    what: '`PartialObjectMetadata` of a list, `PartialObjectMetadataList` of an object',
    theirs: '406',
    ours: 'the metadata in the form that fits',
    why: 'it is clear what is meant',
    matches: ({ case: name }) => /^Accept .*as=PartialObjectMetadata(List)?;v=v1;/.test(name),
  },
  {
    what: 'Failures and discovery documents in YAML',
    theirs: 'served',
    ours: 'JSON; discovery documents that must be YAML are a 406',
    why: 'nobody asks for them',
    matches: ({ request, at, theirs, case: name }) =>
      (at === 'headers.content-type.0' && theirs === 'application/yaml') ||
      (name === 'in other forms' && request.startsWith('1 GET /apis/coordination')),
  },
  {
    what: 'Paths that are not there',
    theirs: 'the text `404 page not found`, or nothing',
    ours: 'a Status of 404',
    why: 'clients of this API read a Status',
    matches: ({ at, ours, theirs, case: name }) =>
      (at === 'body' && isStatus(ours) && isNotFoundText(theirs)) ||
      (at.startsWith('headers.content-type') &&
        /^(plain paths that are not there|unknown groups and versions|OpenAPI that is not there|health|trailing slashes)$/.test(
          name,
        )),
  },
  {
    what: 'Paths with empty or dot segments, encoded separators or broken encoding',
    theirs: '404, or the object that the cleaned path names',
    ours: '400 that says what is wrong',
    why: 'two readers of one path must never see two objects',
    matches: ({ topic, case: name }) =>
      topic === 'paths and methods' &&
      /^(double slashes|dot segments|encoded (slashes|names)|broken encoding)$/.test(name),
  },
  {
    what: 'Methods on documents',
    theirs: 'any method reads `/healthz`; HEAD of `/version` is a 405; no `Allow` header',
    ours: 'GET and HEAD only, and HEAD takes the right to GET; a 405 has an `Allow` header',
    why: 'HTTP',
    matches: ({ topic, case: name, at }) =>
      topic === 'paths and methods' &&
      (/^(HEAD|OPTIONS|methods on documents)$/.test(name) || at.startsWith('headers.allow')),
  },
  {
    what: 'Watches over WebSocket',
    theirs: 'offered; other requests to upgrade are ignored',
    ours: '400',
    why: 'nothing that kubectl or client-go does needs them',
    matches: ({ case: name }) => name === 'an upgrade of what cannot be upgraded',
  },
  {
    what: 'Caching of discovery and OpenAPI',
    theirs: 'an ETag for aggregated discovery and OpenAPI only; `Cache-Control: public`',
    ours: 'an ETag for every document, and `Vary` names the encoding too',
    why: 'so that a client may ask again for nothing',
    matches: ({ at, request }) =>
      /^headers\.(etag|vary|cache-control)/.test(at) && /GET \/(apis?|openapi)\b/.test(request),
  },
  {
    what: 'Caching of the documents of the service-account issuer',
    theirs: 'no ETag, 405 to HEAD, 406 to `Accept: application/json` for the key set',
    ours: 'an ETag, and 304 to whoever has it already; HEAD; served whatever is accepted',
    why: 'relying parties and mirrors ask often, and some libraries ask for JSON',
    matches: ({ at, request }) =>
      at === 'headers.etag' && /GET \/(\.well-known|openid)\//.test(request),
  },
  {
    what: 'Subresources that need a kubelet, a scheduler or a later feature of Sallyport',
    theirs:
      '`pods/log`, `/exec`, `/attach`, `/portforward`, `/binding`, `/eviction`, `/ephemeralcontainers`, `/resize`',
    ours: 'not served',
    why: 'Pods are objects here; nothing runs them',
    matches: ({ topic, at, ours }) =>
      topic === 'documents' && /\bresources\./.test(at) && ours === undefined,
  },
  {
    what: '`/version`',
    theirs: 'names Go, and versions that it can emulate',
    ours: 'names Node.js and, after a plus sign, the version of Sallyport',
    why: 'they are different programs',
    matches: ({ request, at }) =>
      /GET \/version/.test(request) &&
      /^body\.(compiler|git\w+|goVersion|platform|buildDate|emulation\w+|minCompatibility\w+)$/.test(
        at,
      ),
  },
  {
    what: 'Credentials that nobody here understands, such as Basic',
    theirs: 'ignored: the request is anonymous',
    ours: '401',
    why: 'a credential that is present and wrong never falls through to anonymous',
    matches: (difference) => difference.case === 'other credentials' && isOutcome(difference),
  },
  {
    what: 'Requests without a credential',
    theirs: '403 for what `system:anonymous` may not do',
    ours: '401, except for health, version and cluster-info',
    why: 'anonymous users are let in nowhere else',
    matches: (difference) =>
      /^(nobody|SelfSubjectReview)$/.test(difference.case) && isOutcome(difference),
  },
  {
    what: 'Input that cannot be right',
    theirs:
      'guessed at: bytes that are not UTF-8, a second YAML document, nesting up to 10,000 levels, a NUL in a selector, a JSON pointer without a slash, a `copy` from nowhere, a patch of `null`, an empty `Impersonate-User`',
    ours: '400 or 422; bodies nest up to 1,000 levels',
    why: 'a guess may be wrong',
    matches: ({ case: name }) => strict.test(name),
  },
  {
    what: 'A body without a `Content-Type`',
    theirs: 'taken for JSON',
    ours: '415, except of `kubectl create --raw` and `kubectl replace --raw`',
    why: 'any page can have a browser send one',
    matches: (difference) =>
      isOutcome(difference) &&
      (difference.case.startsWith('no type: ') ||
        (difference.case === 'with a body of an unknown type' &&
          difference.request.startsWith('3 '))),
  },
  {
    what: 'Headers of documents in plain text, and of the index of OpenAPI',
    theirs: '`/metrics` names an escaping scheme; the index of OpenAPI is `text/plain`',
    ours: '`text/plain` and `application/json`',
    why: 'they say what the documents are',
    matches: ({ topic, at, request }) =>
      topic === 'documents' &&
      at.startsWith('headers.content-type') &&
      /GET \/(metrics|openapi\/v3)/.test(request),
  },
]

const strict =
  /not UTF-8|two documents|nested deeply in an unknown field|labelSelector app\u0000|a path without slash|copies from what is not there|: (a null document|null)$|acting without a user/
