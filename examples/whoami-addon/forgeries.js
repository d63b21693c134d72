// Attempts to be somebody else. They are sent to this add-on's own port, past the API server, as anybody in the Pod
// network could send them; what comes back is the guard's answer.
import { generateKeyPairSync, sign } from 'node:crypto'
import { request as askHttps } from 'node:https'
import { connect } from 'node:net'
import process from 'node:process'

const answerMs = 5_000
const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const partsOf = (token) => {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const read = (part) => JSON.parse(Buffer.from(part, 'base64url').toString())
  return { header: read(header), claims: read(payload), parts: { header, payload, signature } }
}

/** Changes claims and keeps the signature. */
const withClaims = (token, changes) => {
  const { claims, parts } = partsOf(token)
  return `${parts.header}.${encode({ ...claims, ...changes })}.${parts.signature}`
}

const attempts = {
  'bare-header': {
    title: 'Just say so',
    explains: 'X-Authenticated-User: root, and no token at all',
    send: (token, ask) => ask([['X-Authenticated-User', 'root']]),
  },
  'header-beside-token': {
    title: 'Say so beside a good token',
    explains: 'your own token, and X-Authenticated-User: root in three spellings',
    send: (token, ask) =>
      ask([
        ['Authorization', `Bearer ${token}`],
        ['X-Authenticated-User', 'root'],
        ['X_Authenticated_User', 'root'],
        ['x-authenticated.user', 'root'],
      ]),
  },
  'connection-header': {
    title: 'Have the header thrown away',
    explains: 'your own token, and Connection: X-Authenticated-User, so that a proxy drops it',
    send: (token, ask) =>
      ask([
        ['Authorization', `Bearer ${token}`],
        ['Connection', 'close, X-Authenticated-User'],
      ]),
  },
  'changed-name': {
    title: 'Change the name',
    explains: 'your own token with "sub": "root" and the old signature',
    send: (token, ask) => ask([['Authorization', `Bearer ${withClaims(token, { sub: 'root' })}`]]),
  },
  stretched: {
    title: 'Make it last',
    explains: 'your own token, valid for a year',
    send: (token, ask) => {
      const { claims } = partsOf(token)
      const later = withClaims(token, { exp: claims.exp + 31_536_000 })
      return ask([['Authorization', `Bearer ${later}`]])
    },
  },
  'no-signature': {
    title: 'Sign with nothing',
    explains: '"alg": "none", no signature',
    send: (token, ask) => {
      const { header, claims } = partsOf(token)
      const unsigned = `${encode({ ...header, alg: 'none' })}.${encode({ ...claims, sub: 'root' })}.`
      return ask([['Authorization', `Bearer ${unsigned}`]])
    },
  },
  'own-key': {
    title: 'Sign with a key of my own',
    explains: 'a good ES256 signature, by a key that the token itself brings along',
    send: (token, ask) => {
      const { claims } = partsOf(token)
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const jwk = publicKey.export({ format: 'jwk' })
      const head = encode({ alg: 'ES256', typ: 'k8s-addon+jwt', jwk })
      const signed = `${head}.${encode({ ...claims, sub: 'root' })}`
      const signature = sign('sha256', Buffer.from(signed), {
        key: privateKey,
        dsaEncoding: 'ieee-p1363',
      })
      return ask([['Authorization', `Bearer ${signed}.${signature.toString('base64url')}`]])
    },
  },
  'two-tokens': {
    title: 'Send two tokens',
    explains: 'a good Authorization header, and a second one',
    send: (token, ask) =>
      ask([
        ['Authorization', `Bearer ${token}`],
        ['Authorization', `Bearer ${withClaims(token, { sub: 'root' })}`],
      ]),
  },
  'at-the-api': {
    title: 'Use it elsewhere',
    explains: 'your own token, unchanged, as a credential at the API server',
    send: (token) => askApi(token),
  },
}

/** What can be tried. */
export const forgeries = Object.entries(attempts).map(([name, { title, explains }]) => ({
  name,
  title,
  explains,
}))

/** Tries one, and tells what was answered. */
export async function forge(name, { token, host, port }) {
  if (!Object.hasOwn(attempts, name)) return { message: 'there is no such forgery' }
  if (!token) return { message: 'this request came without a token: nothing to forge with' }
  try {
    return await attempts[name].send(token, (headers) => askRaw(host, port, headers))
  } catch (error) {
    return { message: error.message }
  }
}

/** Headers are written as they are: an HTTP client would tidy them up. */
function askRaw(host, port, headers) {
  const hasConnection = headers.some(([name]) => name === 'Connection')
  const lines = [
    'GET /api/whoami HTTP/1.1',
    `Host: ${host.includes(':') ? `[${host}]` : host}:${port}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(hasConnection ? [] : ['Connection: close']),
  ]
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: answerMs })
    const chunks = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('timeout', () => socket.destroy(new Error('no answer in time')))
    socket.on('error', reject)
    socket.on('close', () => resolve(read(Buffer.concat(chunks).toString())))
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  })
}

function read(answer) {
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  // The whoami answer comes in chunks; the one JSON object in it is all that matters.
  const [json = '{}'] = /\{.*\}/s.exec(body) ?? []
  const { user, reason, message } = JSON.parse(json)
  return { status, ...(user && { user }), ...(reason && { reason }), ...(message && { message }) }
}

function askApi(token) {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
  if (!host || !port) return { message: 'no cluster: this runs outside of a Pod' }
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}` }
    // Nobody's trust hangs on the answer, and the token is about to expire.
    const options = { host, port, path: '/api', headers, rejectUnauthorized: false }
    const asked = askHttps({ ...options, timeout: answerMs }, (response) => {
      response.resume()
      const message =
        response.statusCode === 401
          ? "the API server takes it for nobody's credential"
          : `the API server answered ${response.statusCode}`
      response.on('end', () => resolve({ status: response.statusCode, message }))
    })
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')))
    asked.on('error', reject)
    asked.end()
  })
}
