import { type Answer, type Ask, type Case, cases, get, media, post, type Topic } from '../ask.ts'
import { bodyOf, metadataOf } from '../reading.ts'

type Fields = Record<string, unknown>

const accounts = '/api/v1/namespaces/{ns}/serviceaccounts'
const account = `${accounts}/bot`
const tokenPath = `${account}/token`
const reviewPath = '/apis/authentication.k8s.io/v1/tokenreviews'

const request = (spec: unknown, metadata?: Fields): Fields => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  ...(metadata && { metadata }),
  spec,
})
const wish = (spec: unknown, metadata?: Fields): Ask => post(tokenPath, request(spec, metadata))
const lasting = (expirationSeconds: unknown): Ask => wish({ expirationSeconds })
const bound = (ref: unknown): Ask => wish({ boundObjectRef: ref })
const pod = { kind: 'Pod', apiVersion: 'v1', name: 'runs' }
const stranger = '99999999-9999-4999-9999-999999999999'

const object = (kind: string, name: string, rest: Fields = {}): Fields => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...rest,
})
const podOf = (name: string, serviceAccountName: string, nodeName?: string): Ask =>
  post(
    '/api/v1/namespaces/{ns}/pods',
    object('Pod', name, {
      spec: {
        serviceAccountName,
        ...(nodeName && { nodeName }),
        automountServiceAccountToken: false,
        containers: [{ name: 'main', image: 'x' }],
      },
    }),
  )

const part = (token: string, index: number): Fields =>
  JSON.parse(Buffer.from(token.split('.')[index] ?? '', 'base64url').toString())

/** Tokens differ from one second to the next: they are compared by what they say, times relative to each other. */
function readToken(token: unknown): unknown {
  if (typeof token !== 'string' || token.split('.').length !== 3) return token
  const { iat, exp, nbf, jti, ...claims } = part(token, 1)
  const own = (claims['kubernetes.io'] ?? {}) as Fields
  const since = (time: unknown) => (typeof time === 'number' ? time - Number(iat) : time)
  return {
    header: part(token, 0),
    order: Object.keys(part(token, 1)),
    orderOfOwn: Object.keys(own),
    claims: {
      ...claims,
      jti: typeof jti,
      exp: since(exp),
      nbf: since(nbf),
      'kubernetes.io': { ...own, warnafter: since(own['warnafter']) },
    },
    told: iat,
  }
}

const roundedToTen = (seconds: number): number => Math.round(seconds / 10) * 10

function readAnswer(json: unknown): unknown {
  const { status, spec, ...rest } = json as { status?: Fields | string; spec?: Fields }
  if (typeof status !== 'object' || !status) return json
  const read = readToken(status['token']) as Fields | undefined
  const until = status['expirationTimestamp']
  const told = read?.['told']
  const asked = spec && 'token' in spec ? { ...spec, token: typeof spec['token'] } : spec
  return {
    ...rest,
    spec: asked,
    status: {
      ...status,
      ...(read && { token: { ...read, told: typeof told } }),
      ...(typeof until === 'string' && {
        // kube-apiserver looks at its clock twice, and a second may pass in between.
        expirationTimestamp: roundedToTen(Date.parse(until) / 1000 - Number(told)),
      }),
    },
  }
}

const tokenOf = (answer: Answer | undefined): string =>
  String(((bodyOf(answer)['status'] ?? {}) as Fields)['token'])

const review = (token: string, audiences?: readonly string[]): Ask =>
  post(reviewPath, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, ...(audiences && { audiences }) },
  })

/**
 * A review of a token whose account or bound object is gone. kube-apiserver looks those up in what
 * its watches have brought it, and remembers for ten seconds if that was still the old state.
 */
const reviewOfGone = (token: string): Ask => ({
  ...review(token),
  until: (answer) => !((bodyOf(answer)['status'] ?? {}) as Fields)['authenticated'],
})

/** What a bearer of the token is answered. */
const use = (answer: Answer | undefined, path: string): Ask =>
  get(path, { as: 'nobody', headers: { authorization: `Bearer ${tokenOf(answer)}` } })

const remove = (path: string): Ask => ({ method: 'DELETE', path })
const whoPath = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const who = (answer: Answer | undefined): Ask =>
  post(
    whoPath,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    { as: 'nobody', headers: { authorization: `Bearer ${tokenOf(answer)}` } },
  )

const issuer = 'https://kubernetes.default.svc.cluster.local'

const requests = cases({
  'a token with nothing asked for': [
    wish({}),
    wish({ audiences: [] }),
    wish({ audiences: null }),
    post(tokenPath, request(undefined)),
    post(tokenPath, {}),
    post(tokenPath, ''),
    post(tokenPath, { kind: 'TokenRequest', spec: {} }),
  ],
  'a token for audiences': [
    wish({ audiences: ['vault'] }),
    wish({ audiences: ['vault', issuer] }),
    wish({ audiences: ['a', 'a'] }),
    wish({ audiences: [''] }),
    wish({ audiences: 'vault' }),
    wish({ audiences: [5] }),
  ],
  'a token for a time': [
    lasting(600),
    lasting(599),
    lasting(0),
    lasting(-1),
    lasting(3600),
    lasting(86_400),
    lasting(2 ** 32),
    lasting(2 ** 32 + 1),
    lasting(1.5),
    lasting('3600'),
    lasting(null),
  ],
  'a token for an account that is named': [
    wish({}, { name: 'bot' }),
    wish({}, { name: 'other' }),
    wish({}, { namespace: '{ns}' }),
    wish({}, { namespace: 'other' }),
    wish({}, { name: 'bot', namespace: '{ns}', labels: { a: 'b' }, annotations: { c: 'd' } }),
    wish({}, { generateName: 'x-' }),
    wish({}, { uid: stranger }),
    (_seen, before) => wish({}, { uid: metadataOf(before[0])['uid'] }),
    wish({}, { resourceVersion: '5' }),
  ],
  'a token of an account that is not there': [
    post(`${accounts}/none/token`, request({})),
    post('/api/v1/namespaces/nowhere/serviceaccounts/bot/token', request({})),
    post(`${accounts}/none/token`, request({ expirationSeconds: 5 })),
  ],
  'other methods': [
    get(tokenPath),
    { method: 'PUT', path: tokenPath, body: request({}) },
    { method: 'DELETE', path: tokenPath },
    post('/api/v1/serviceaccounts/bot/token', request({})),
  ],
  'other kinds and versions': [
    post(tokenPath, { ...request({}), kind: 'TokenReview' }),
    post(tokenPath, { ...request({}), apiVersion: 'v1' }),
    post(tokenPath, { ...request({}), apiVersion: 'authentication.k8s.io/v1beta1' }),
    post(tokenPath, '{'),
    post(tokenPath, request({}), { type: 'text/html' }),
    post(tokenPath, request({ odd: 1 })),
    post(`${tokenPath}?fieldValidation=Strict`, request({ odd: 1 })),
    post(`${tokenPath}?fieldValidation=Warn`, request({ odd: 1 })),
    post(`${tokenPath}?dryRun=All`, request({})),
    post(`${tokenPath}?dryRun=Some`, request({})),
  ],
  'other forms': [
    post(tokenPath, request({}), { accept: media.table }),
    post(tokenPath, request({}), { accept: media.metadata }),
    post(tokenPath, 'apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\n', {
      type: media.yaml,
    }),
  ],
  'a status that is sent': post(tokenPath, {
    ...request({}),
    status: { token: 'forged', expirationTimestamp: '2030-01-01T00:00:00Z' },
  }),
  'without the right': post(tokenPath, request({}), { as: 'visitor' }),
  'bound to a Pod': [
    bound(pod),
    (_seen, before) => bound({ ...pod, uid: metadataOf(before[2])['uid'] }),
    bound({ ...pod, uid: stranger }),
    bound({ ...pod, name: 'none' }),
    bound({ ...pod, name: 'of-another' }),
    bound({ ...pod, name: 'without-node' }),
    bound({ ...pod, name: '' }),
    bound({ ...pod, apiVersion: 'v2' }),
    bound({ ...pod, apiVersion: '' }),
    bound({ ...pod, apiVersion: 'apps/v1' }),
    bound({}),
    bound('x'),
  ],
  'bound to other kinds': [
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'held' }),
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'held', uid: stranger }),
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'none' }),
    bound({ kind: 'Node', apiVersion: 'v1', name: 'same-token-node' }),
    bound({ kind: 'Node', apiVersion: 'v1', name: 'same-token-node', uid: stranger }),
    bound({ kind: 'Node', apiVersion: 'v1', name: 'none' }),
    bound({ kind: 'ConfigMap', apiVersion: 'v1', name: 'held' }),
    bound({ kind: 'Deployment', apiVersion: 'apps/v1', name: 'held' }),
    bound({ kind: 'Deployment', apiVersion: 'a/b/c', name: 'held' }),
    bound({ kind: 'pod', apiVersion: 'v1', name: 'runs' }),
  ],
  'the default token of a Pod': [
    wish({ expirationSeconds: 3607, boundObjectRef: pod }),
    wish({ expirationSeconds: 3607 }),
    wish({ expirationSeconds: 3607, boundObjectRef: pod, audiences: ['vault'] }),
    wish({ expirationSeconds: 3607, boundObjectRef: pod, audiences: [issuer, 'vault'] }),
  ],
})

const uses = cases({
  'a review of a plain token': [
    wish({}),
    (seen) => review(tokenOf(seen[0])),
    (seen) => review(tokenOf(seen[0]), [issuer]),
    (seen) => review(tokenOf(seen[0]), ['other']),
    (seen) => review(tokenOf(seen[0]), ['other', issuer]),
    (seen) => who(seen[0]),
    (seen) => use(seen[0], '/api/v1/namespaces/{ns}/secrets'),
  ],
  'a review of a token for others': [
    wish({ audiences: ['vault', 'other'] }),
    (seen) => review(tokenOf(seen[0])),
    (seen) => review(tokenOf(seen[0]), ['vault']),
    (seen) => review(tokenOf(seen[0]), ['vault', 'other', 'more']),
    (seen) => review(tokenOf(seen[0]), ['more', 'other', 'vault']),
    (seen) => who(seen[0]),
  ],
  'a review of a token of a Pod': [
    bound(pod),
    (seen) => review(tokenOf(seen[0])),
    (seen) => who(seen[0]),
  ],
  'a review of a token of a Node': [
    bound({ kind: 'Node', apiVersion: 'v1', name: 'same-token-node' }),
    (seen) => review(tokenOf(seen[0])),
    (seen) => who(seen[0]),
  ],
  'a review of a token of a Secret': [
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'held' }),
    (seen) => review(tokenOf(seen[0])),
  ],
  'a review after the account has gone': [
    post(accounts, object('ServiceAccount', 'passing')),
    post(`${accounts}/passing/token`, request({})),
    remove(`${accounts}/passing`),
    (seen) => reviewOfGone(tokenOf(seen[1])),
    post(accounts, object('ServiceAccount', 'passing')),
    (seen) => reviewOfGone(tokenOf(seen[1])),
  ],
  'a review after the Secret has gone': [
    post('/api/v1/namespaces/{ns}/secrets', object('Secret', 'passing')),
    bound({ kind: 'Secret', apiVersion: 'v1', name: 'passing' }),
    remove('/api/v1/namespaces/{ns}/secrets/passing'),
    (seen) => reviewOfGone(tokenOf(seen[1])),
    post('/api/v1/namespaces/{ns}/secrets', object('Secret', 'passing')),
    (seen) => reviewOfGone(tokenOf(seen[1])),
  ],
  'a review after the Pod has gone': [
    podOf('passing', 'bot'),
    bound({ ...pod, name: 'passing' }),
    remove('/api/v1/namespaces/{ns}/pods/passing?gracePeriodSeconds=0'),
    (seen) => reviewOfGone(tokenOf(seen[1])),
    podOf('passing', 'bot'),
    (seen) => reviewOfGone(tokenOf(seen[1])),
  ],
  'a review after the Node has gone': [
    post('/api/v1/nodes', object('Node', 'same-token-passing')),
    bound({ kind: 'Node', apiVersion: 'v1', name: 'same-token-passing' }),
    podOf('on-passing', 'bot', 'same-token-passing'),
    bound({ ...pod, name: 'on-passing' }),
    remove('/api/v1/nodes/same-token-passing'),
    (seen) => reviewOfGone(tokenOf(seen[1])),
    (seen) => review(tokenOf(seen[3])),
    bound({ ...pod, name: 'on-passing' }),
    post('/api/v1/nodes', object('Node', 'same-token-passing')),
    (seen) => reviewOfGone(tokenOf(seen[1])),
  ],
})

const documents = cases({
  'the documents of the issuer': [
    get('/.well-known/openid-configuration'),
    get('/openid/v1/jwks'),
    get('/.well-known/openid-configuration/'),
    get('/openid/v1/jwks/'),
    get('/openid/v1/jwks?x=1'),
    get('/openid/v1/jwks', { as: 'visitor' }),
    get('/openid/v1/jwks', { as: 'wrong-token' }),
  ],
  'the documents for a service account': [
    wish({}),
    (seen) => use(seen[0], '/openid/v1/jwks'),
    (seen) => use(seen[0], '/.well-known/openid-configuration'),
    (seen) => ({ ...use(seen[0], '/openid/v1/jwks'), method: 'DELETE' }),
    wish({ audiences: ['vault'] }),
    (seen) => use(seen[4], '/openid/v1/jwks'),
  ],
})

const compared = (one: Case): Case => ({ ...one, view: readAnswer })

/** TokenRequest, TokenReview and the documents, with the same keys and issuer on both sides. */
export const tokens: Topic = {
  name: 'tokens',
  before: [
    post(accounts, object('ServiceAccount', 'bot')),
    post('/api/v1/nodes', object('Node', 'same-token-node')),
    podOf('runs', 'bot', 'same-token-node'),
    podOf('of-another', 'another', 'same-token-node'),
    podOf('without-node', 'bot'),
    post('/api/v1/namespaces/{ns}/secrets', object('Secret', 'held')),
  ],
  cases: [...requests, ...uses, ...documents].map(compared),
}
