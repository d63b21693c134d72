import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { UserInfo } from '../../src/core/index.ts'
import { decidingHeaders } from '../../src/http/deciding-headers.ts'
import { deliversMalformedHeaders } from '../../src/http/http2-probe.ts'
import { labAuthority, labClient } from '../../src/http/tls-lab.suite.ts'
import { eventually } from '../support/eventually.ts'
import type { Credential, HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { sourceFiles } from '../support/source-files.ts'

type HeaderName = keyof typeof decidingHeaders

let folder: string
let server: InProcessServer
/** No credential of its own. */
let stranger: HttpsCaller
/** A front proxy, whose `X-Remote-*` headers are believed. */
let frontProxy: HttpsCaller

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-headers-'))
  await writeFile(join(folder, 'tokens.csv'), 'admin-token,admin,1,system:masters\nann-token,ann,2')
  const proxies = await labAuthority('proxies')
  await writeFile(join(folder, 'proxies.crt'), proxies.bundlePem)
  server = await startInProcess({
    flags: [
      ['--token-auth-file', join(folder, 'tokens.csv')],
      ['--requestheader-client-ca-file', join(folder, 'proxies.crt')],
    ].flat(),
  })
  stranger = server.as({})
  frontProxy = server.as((await labClient(proxies, 'front')) satisfies Credential)
})
afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

interface Reply {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Sends bytes on a connection of their own, and reads the reply to its end. */
async function send(caller: HttpsCaller, bytes: string): Promise<Reply> {
  const socket = await caller.socket()
  socket.write(bytes, 'latin1')
  const reply = (await text(socket)).replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '')
  const end = reply.indexOf('\r\n\r\n')
  return {
    status: Number(reply.slice(9, 12)),
    head: reply.slice(0, end),
    body: reply.slice(end + 4),
  }
}

const reviewPath = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const review = '{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}'

/** The user that acts in a request with these header lines, or the code of its rejection. */
async function whoActs(caller: HttpsCaller, lines: readonly string[]): Promise<UserInfo | number> {
  const head = [
    `POST ${reviewPath} HTTP/1.1`,
    'Host: a',
    ...lines,
    'Content-Type: application/json',
    `Content-Length: ${review.length}`,
    'Connection: close',
  ]
  const { status, body } = await send(caller, `${head.join('\r\n')}\r\n\r\n${review}`)
  return status === 201 ? (JSON.parse(body).status.userInfo as UserInfo) : status
}

/** One spelling of a header, and the values that an exact reader may take from it; none: it must reject. */
interface Spelling {
  readonly what: string
  readonly lines: readonly string[]
  readonly asSent: readonly string[]
}

/** Every way to spell a header of which we know, well-formed ones first. */
function spellingsOf(name: string, value: string, isSingle: boolean): Spelling[] {
  const one = (what: string, line: string, ...asSent: string[]): Spelling => ({
    what,
    lines: [line],
    asSent,
  })
  const isExtra = /-extra-/i.test(name)
  const fold = (mark: string): string => name.replaceAll('-', mark)
  return [
    ...wellFormed(name, value),
    ...['\0', '\u0001', '\u0008', '\u000b', '\u001f', '\u007f', '\r'].flatMap((byte) => [
      one(`${JSON.stringify(byte)} behind`, `${name}: ${value}${byte}`),
      one(`${JSON.stringify(byte)} before`, `${name}: ${byte}${value}`),
      one(`${JSON.stringify(byte)} inside`, `${name}: ${value}${byte}${value}`),
      one(`${JSON.stringify(byte)} in the name`, `${name}${byte}: ${value}`),
    ]),
    one('a bare LF inside', `${name}: ${value}\n${value}`),
    one('a bare LF at the end', `${name}: ${value}\nX-Next: 1`, value),
    one('a folded line', `${name}: ${value}\r\n ${value}`, `${value} ${value}`),
    one('as a folded line', ` ${name}: ${value}`),
    one('an empty value', `${name}:`, ...(isExtra ? [''] : [])),
    one('white space as value', `${name}: \t `, ...(isExtra ? [''] : [])),
    one('a space before the colon', `${name} : ${value}`),
    one('a tab before the colon', `${name}\t: ${value}`),
    one('no colon', `${name} ${value}`),
    ...(name.includes('-')
      ? [one('underscores', `${fold('_')}: ${value}`), one('dots', `${fold('.')}: ${value}`)]
      : []),
    one('an accent in the name', `${name}\u00e9: ${value}`),
    one('a byte that is not UTF-8', `${name}: ${value}\u00e9`),
    one('a no-break space behind', `${name}: ${value}\u00c2\u00a0`, `${value}\u00a0`),
    one('UTF-8', `${name}: ${value}\u00c5\u0082`, `${value}\u0142`),
    {
      what: 'twice',
      lines: [`${name}: ${value}`, `${name}: other`],
      asSent: isSingle ? [] : [`${value}|other`],
    },
    {
      what: 'after an empty one',
      lines: [`${name}:`, `${name}: ${value}`],
      asSent: isExtra ? [`|${value}`] : [],
    },
    {
      what: 'named by Connection',
      lines: [`Connection: ${name}`, `${name}: ${value}`],
      asSent: [],
    },
  ]
}

/** RFC 9110 §5.5: white space around a value is no part of it. */
const wellFormed = (name: string, value: string): Spelling[] =>
  [
    `${name}: ${value}`,
    `${name.toLowerCase()}:${value}`,
    `${name.toUpperCase()}: ${value}`,
    `${name}: ${value} `,
    `${name}: ${value}\t`,
    `${name}:   ${value}`,
    `${name}:\t${value}`,
  ].map((line) => ({ what: JSON.stringify(line), lines: [line], asSent: [value] }))

/** How an identity header is sent, and what of the acting user it decides. */
interface IdentityRow {
  readonly name: string
  readonly value: string
  readonly caller: () => HttpsCaller
  readonly besides: readonly string[]
  readonly observe: (user: UserInfo) => readonly string[] | string | undefined
  /** What the observed value would be if the header had not been sent: the hole. */
  readonly unsent: string | undefined
}

const admin = 'Authorization: Bearer admin-token'
const asBob = [admin, 'Impersonate-User: bob']
const remote = ['X-Remote-User: eve']
const withoutBase = ({ groups }: UserInfo): string[] =>
  groups.filter((group) => !group.startsWith('system:'))

const identityRows: Partial<Record<HeaderName, IdentityRow>> = {
  authorization: {
    name: 'Authorization',
    value: 'Bearer ann-token',
    caller: () => stranger,
    besides: [],
    observe: ({ username }) => (username === 'ann' ? 'Bearer ann-token' : username),
    unsent: 'system:anonymous',
  },
  'impersonate-user': {
    name: 'Impersonate-User',
    value: 'bob',
    caller: () => stranger,
    besides: [admin],
    observe: ({ username }) => username,
    unsent: 'admin',
  },
  'impersonate-uid': {
    name: 'Impersonate-Uid',
    value: 'u-1',
    caller: () => stranger,
    besides: asBob,
    observe: ({ uid }) => uid,
    unsent: undefined,
  },
  'impersonate-group': {
    name: 'Impersonate-Group',
    value: 'team',
    caller: () => stranger,
    besides: asBob,
    observe: withoutBase,
    unsent: '',
  },
  'impersonate-extra-': {
    name: 'Impersonate-Extra-Scope',
    value: 'one',
    caller: () => stranger,
    besides: asBob,
    observe: ({ extra }) => extra?.['scope'],
    unsent: undefined,
  },
  'x-remote-user': {
    name: 'X-Remote-User',
    value: 'eve',
    caller: () => frontProxy,
    besides: [],
    observe: ({ username }) => username,
    unsent: 'front',
  },
  'x-remote-uid': {
    name: 'X-Remote-Uid',
    value: 'u-1',
    caller: () => frontProxy,
    besides: remote,
    observe: ({ uid }) => uid,
    unsent: undefined,
  },
  'x-remote-group': {
    name: 'X-Remote-Group',
    value: 'team',
    caller: () => frontProxy,
    besides: remote,
    observe: withoutBase,
    unsent: '',
  },
  'x-remote-extra-': {
    name: 'X-Remote-Extra-Scope',
    value: 'one',
    caller: () => frontProxy,
    besides: remote,
    observe: ({ extra }) => extra?.['scope'],
    unsent: undefined,
  },
}

const rejections = [400, 401]

describe('an identity header is taken exactly as sent, or its request is rejected [SEC-R301]', () => {
  test.each(Object.entries(identityRows))('%s', async (key, row) => {
    const isSingle = ![
      'impersonate-group',
      'impersonate-extra-',
      'x-remote-group',
      'x-remote-extra-',
    ].includes(key)
    const wrong: unknown[] = []
    for (const { what, lines, asSent } of spellingsOf(row.name, row.value, isSingle)) {
      const acting = await whoActs(row.caller(), [...row.besides, ...lines])
      const seen =
        typeof acting === 'number' ? acting : [row.observe(acting) ?? []].flat().join('|')
      const isRejected = typeof seen === 'number' && rejections.includes(seen)
      const isWellFormed = lines.length === 1 && asSent[0] === row.value && !what.includes('LF')
      if (isWellFormed ? seen !== row.value : !isRejected && !asSent.includes(String(seen)))
        wrong.push({ what, lines, seen, asSent })
    }
    expect(wrong).toEqual([])
  })

  test.each([
    ['a uid', 'Impersonate-Uid: u-1'],
    ['a group', 'Impersonate-Group: team'],
    ['an extra', 'Impersonate-Extra-Scope: one'],
    ['an unknown header', 'Impersonate-Users: bob'],
    ['a key that cannot be decoded', 'Impersonate-Extra-%zz: one'],
    ['no key', 'Impersonate-Extra-: one'],
  ])('impersonation with %s and no user is rejected', async (_what, line) => {
    expect(await whoActs(stranger, [admin, line])).toBe(400)
    expect(await whoActs(stranger, asBob)).toMatchObject({ username: 'bob' })
  })

  test.each([
    'Impersonate-User: bob',
    'Authorization: Bearer ann-token',
    'X-Remote-User: eve',
    'Impersonate_User: bob',
  ])('%s as a trailer is rejected', async (trailer) => {
    const head = [
      `POST ${reviewPath} HTTP/1.1`,
      'Host: a',
      admin,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'Connection: close',
    ]
    const chunk = `${review.length.toString(16)}\r\n${review}\r\n0\r\n`
    const bytes = `${head.join('\r\n')}\r\n\r\n${chunk}`
    expect((await send(stranger, `${bytes}${trailer}\r\n\r\n`)).status).toBe(400)
    expect((await send(stranger, `${bytes}X-Other: 1\r\n\r\n`)).status).toBe(201)
  })
})

describe('a credential that is present and malformed is never anonymous [SEC-R303]', () => {
  /** The path is open to anonymous users: 200 means that the credential was accepted or ignored. */
  const version = async (lines: readonly string[]): Promise<number> => {
    const head = ['GET /version HTTP/1.1', 'Host: a', ...lines, 'Connection: close']
    return (await send(stranger, `${head.join('\r\n')}\r\n\r\n`)).status
  }

  test('in Authorization', async () => {
    const value = 'Bearer ann-token'
    const wrong: unknown[] = []
    const more = [
      'Bearer',
      'Bearer ',
      'Bearer  ann-token',
      'Bearer\tann-token',
      'Bearer a, Bearer b',
    ]
    for (const { what, lines, asSent } of [
      ...spellingsOf('Authorization', value, true),
      ...more.map((each) => ({
        what: each,
        lines: [`Authorization: ${each}`],
        asSent: [] as string[],
      })),
    ]) {
      const status = await version(lines)
      const isAccepted = status === 200 && asSent.includes(value)
      if (!isAccepted && !rejections.includes(status)) wrong.push({ what, status })
    }
    expect(wrong).toEqual([])
    expect(await version([])).toBe(200)
  })

  const token = Buffer.from('ann-token').toString('base64url')
  const prefix = 'base64url.bearer.authorization.k8s.io.'
  const upgrade = [
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${'A'.repeat(22)}==`,
  ]

  test.each([
    ['a WebSocket protocol', `${prefix}${token}, x`, 'ann'],
    ['one alone', `${prefix}${token}`, undefined],
    ['two', `${prefix}${token}, ${prefix}${token}, x`, undefined],
    ['an empty token', `${prefix}, x`, undefined],
    ['no token', `${prefix.slice(0, -1)}, x`, undefined],
    ['padding', `${prefix}${token}==, x`, undefined],
    ['capital letters', `Base64URL.Bearer.authorization.k8s.io.${token}, x`, undefined],
    ['a no-break space before', `\u00a0${prefix}${token}, x`, undefined],
    ['a byte before', `\u00ff${prefix}${token}, x`, undefined],
    ['a wrong token', `${prefix}${Buffer.from('other').toString('base64url')}, x`, undefined],
  ])('as WebSocket protocol: %s', async (_what, value, user) => {
    const auditId = randomUUID()
    const path = '/api/v1/namespaces/default/services/none/proxy/'
    const lines = [`GET ${path} HTTP/1.1`, 'Host: a', 'Connection: Upgrade', ...upgrade]
    const bytes = [...lines, `Audit-Id: ${auditId}`, `Sec-WebSocket-Protocol: ${value}`].join(
      '\r\n',
    )
    const { status } = await send(stranger, `${bytes}\r\n\r\n`)
    // The user may not use the proxy: what counts is whose request it was.
    expect(await auditedUser(auditId)).toBe(user)
    expect(user === undefined ? rejections : [403]).toContain(status)
    // Without a WebSocket the token is no credential either, and not ignored.
    expect(await version([`Sec-WebSocket-Protocol: ${value}`])).toBe(401)
  })

  async function auditedUser(auditId: string): Promise<string | undefined> {
    const line = await eventually('audit event', async () => {
      const lines = (await readFile(join(server.dataDirectory, 'audit.log'), 'utf8')).split('\n')
      const found = lines.find(
        (each) => each.includes(auditId) && each.includes('ResponseComplete'),
      )
      return found
    })
    return JSON.parse(line).user?.username
  }
})

/** Rows of the headers that decide something other than an identity. */
const otherRows: Partial<Record<HeaderName, () => Promise<void>>> = {
  'sec-websocket-protocol': async () => {
    // In the table of credentials above; a second header line counts as part of the list.
    const lines = [
      'Sec-WebSocket-Protocol: x',
      'Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YQ',
    ]
    expect(await whoActs(stranger, lines)).toBe(401)
  },
  host: () => neverTwice('Host', ['a', 'b']),
  'content-length': () => neverTwice('Content-Length', ['5', '6']),
  'transfer-encoding': () => neverTwice('Transfer-Encoding', ['chunked', 'gzip']),
  'content-type': () => storedOrRejected('Content-Type', 'application/json', (text) => text),
  'content-encoding': () =>
    storedOrRejected('Content-Encoding', 'gzip', (text) => gzipSync(text).toString('latin1')),
  connection: async () => {
    for (const name of [
      'authorization',
      'Impersonate-User',
      'X-Remote-User',
      'Host',
      'Content_Length',
      'Audit-Id',
    ])
      expect(await whoActs(stranger, [admin, `Connection: keep-alive, ${name}`])).toBe(400)
    expect(await whoActs(stranger, [admin, 'Connection: keep-alive, X-Own'])).toMatchObject({
      username: 'admin',
    })
  },
  upgrade: () => neverTwice('Upgrade', ['websocket', 'SPDY/3.1']),
  expect: async () => {
    expect(await whoActs(stranger, [admin, 'Expect: 200-maybe'])).toBe(417)
    await neverTwice('Expect', ['100-continue', 'other'])
  },
  'sec-websocket-key': () => testedIn('service-proxy-upgrade', 'sec-websocket-key'),
  'sec-websocket-version': () => testedIn('service-proxy-upgrade', 'sec-websocket-version'),
  origin: () => testedIn('service-proxy-attacks', 'origin'),
  referer: () => testedIn('service-proxy-attacks', 'referer'),
  'sec-fetch-site': () => testedIn('service-proxy-attacks', 'sec-fetch-site'),
  'sec-fetch-mode': () => testedIn('service-proxy-attacks', 'sec-fetch-mode'),
  'sec-fetch-dest': () => testedIn('service-proxy-attacks', 'sec-fetch-dest'),
  cookie: () => testedIn('service-proxy-identity', 'cookie'),
  'service-worker': () => testedIn('api-origin', 'service-worker'),
  'x-forwarded-host': () => testedIn('service-proxy-attacks', 'x-forwarded-host'),
  'kubectl-command': () => testedIn('foreign-pages', 'kubectl-command'),
  'audit-id': async () => {
    for (const [value, isKept] of [
      ['my-id', true],
      ['a b', false],
      ['', false],
      ['é', false],
      ['a,b', false],
    ] as const) {
      const bytes = `GET /version HTTP/1.1\r\nHost: a\r\nAudit-Id: ${value}\r\nConnection: close\r\n\r\n`
      const [, given] =
        /\r\nAudit-Id: (.*)\r\n/.exec(`${(await send(stranger, bytes)).head}\r\n`) ?? []
      expect(given === value).toBe(isKept)
      if (!isKept) expect(given).toMatch(/^[\da-f-]{36}$/)
    }
  },
  'x-forwarded-for': async () => {
    expect(await whoActs(stranger, [admin, 'X-Forwarded-For: 127.0.0.1'])).toMatchObject({
      username: 'admin',
    })
    expect(await whoActs(stranger, ['X-Forwarded-For: 127.0.0.1'])).toBe(401)
  },
}

/** Headers with rules of their own have a table of their own; they decide nothing about identities. */
async function testedIn(file: string, name: string): Promise<void> {
  const text = await readFile(join(import.meta.dirname, `${file}.test.ts`), 'utf8')
  expect(text.toLowerCase()).toContain(name)
}

/** Two values, or a name that some readers take for it, are rejected by the parser or by us. */
async function neverTwice(name: string, [first, second]: readonly [string, string]): Promise<void> {
  for (const lines of [
    [`${name}: ${first}`, `${name}: ${second}`],
    [`${name}: ${first}`, `${name}: ${first}`],
    ...(name.includes('-') ? [[`${name.replaceAll('-', '_')}: ${first}`]] : []),
    [`${name}\0: ${first}`],
    [`${name}: ${first}\0`],
    [`${name} : ${first}`],
  ])
    expect([lines, await whoActs(stranger, [admin, ...lines])]).toEqual([lines, 400])
}

let stored = 0

/** An object is stored as it was meant, or the request is rejected and nothing is stored. */
async function storedOrRejected(
  name: string,
  value: string,
  encode: (text: string) => string,
): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps'
  for (const { what, lines, asSent } of spellingsOf(name, value, true)) {
    const object = `name-${stored++}`
    const body = encode(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"${object}"}}`)
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: a',
      admin,
      ...(name === 'Content-Type' ? [] : ['Content-Type: application/json']),
      ...lines,
      `Content-Length: ${body.length}`,
      'Connection: close',
    ]
    const { status } = await send(stranger, `${head.join('\r\n')}\r\n\r\n${body}`)
    const found = await server.as({ token: 'admin-token' }).get(`${path}/${object}`)
    if (asSent.includes(value) && !what.includes('LF')) expect([what, status]).toEqual([what, 201])
    else if (status !== 201) expect([what, status >= 400 && status < 500]).toEqual([what, true])
    expect([what, found.status]).toEqual([what, status === 201 ? 200 : 404])
  }
}

describe('every other header that decides something [SEC-R304]', () => {
  test.each(Object.entries(otherRows))('%s', async (_name, row) => {
    await expect(row()).resolves.toBeUndefined()
  })
})

describe('the list of deciding headers is complete [SEC-R305]', () => {
  test('each has a row', () => {
    expect([...Object.keys(identityRows), ...Object.keys(otherRows)].sort()).toEqual(
      Object.keys(decidingHeaders).sort(),
    )
  })

  /** Read, and of no weight: what they say is a matter of form. */
  const plain = new Set([
    'accept',
    'accept-encoding',
    'user-agent',
    'if-none-match',
    'if-modified-since',
    'range',
    'te',
    'trailer',
    // Of responses of others.
    'date',
    'age',
    'location',
    'retry-after',
    'cache-control',
    'keep-alive',
    'vary',
    'set-cookie',
  ])
  const reads = [
    /(?<![-\w/])headers\??\.([a-z]\w*)\b(?!\()/g,
    /\bheaders\[['"`]([\w:-]+)['"`]\]/g,
    /(?:rawHeaderValues|single)\([^,()]+(?:\.rawHeaders)?, ['"`]([\w-]+)['"`]\)/g,
  ]
  /** Properties of the objects that are called `headers` there, and no names of headers. */
  const properties = new Set([
    'username',
    'uid',
    'group',
    'extraPrefix',
    'map',
    'length',
    'push',
    'get',
    'set',
    'keys',
    'delete',
    'some',
    'every',
    'entries',
    'flat',
  ])

  test('each header that the API server reads is in it', async () => {
    const unknown: string[] = []
    let found = 0
    for (const { path, text } of await sourceFiles([
      'apiserver',
      'authn',
      'api',
      'http',
      'addon/service-proxy',
      'bootstrap/server',
    ]))
      for (const pattern of reads)
        for (const [, spelt = ''] of text.matchAll(pattern)) {
          const name = spelt.toLowerCase()
          if (properties.has(spelt) || name.startsWith(':')) continue
          found++
          if (!plain.has(name) && !Object.hasOwn(decidingHeaders, name))
            unknown.push(`${path}: ${name}`)
        }
    expect(unknown).toEqual([])
    expect(found).toBeGreaterThan(20)
  })
})

test('HTTP/2 is offered exactly where malformed headers arrive [SEC-R302]', async () => {
  const offered = stranger.socket({ ALPNProtocols: ['h2'] }).then(
    (socket) => socket.alpnProtocol,
    () => false,
  )
  expect(await offered).toBe((await deliversMalformedHeaders()) ? 'h2' : false)
  const socket = await stranger.socket({ ALPNProtocols: ['h2', 'http/1.1'] })
  expect(socket.alpnProtocol).toBe((await deliversMalformedHeaders()) ? 'h2' : 'http/1.1')
  socket.destroy()
  await once(socket, 'close')
})
