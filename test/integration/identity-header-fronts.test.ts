import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  exchange,
  type Front,
  frontNames,
  openFront,
  statusOf,
} from '../support/forwarding-fronts.ts'
import { requestOn } from '../support/https-caller.ts'
import { identityHeaderNames, neededHeaderNames } from '../support/identity-header-names.ts'
import { outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'

const mark = 'forged-by-a-client'
const websocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
/** How a request arrives: each a request line and the lines that belong to it. */
const kinds: Readonly<Record<string, (front: Front) => readonly string[]>> = {
  'GET over HTTP/1.1': ({ path }) => [`GET ${path} HTTP/1.1`, 'Connection: close'],
  'GET over HTTP/1.0': ({ path }) => [`GET ${path} HTTP/1.0`],
  'POST with a length': ({ path }) => [
    `POST ${path} HTTP/1.1`,
    'Connection: close',
    'Content-Type: text/plain',
    'Content-Length: 0',
  ],
  'a WebSocket': ({ path }) => [`GET ${path} HTTP/1.1`, ...websocket],
}
const spellings: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toUpperCase(),
  (name) => name.replaceAll('-', '_'),
  (name) => name.replaceAll('-', '.'),
]
/** Of each front: which it answers itself, or uses as its own credential. */
const ownOf = (front: Front): ReadonlySet<string> =>
  new Set(front.name === 'guard' || front.name === 'service proxy' ? ['authorization'] : [])
/** The API server decides by these itself, and the local proxy refuses or replaces them. */
const decided = /^(?:authorization|impersonate-|x-remote-)/i

async function forwarded(front: Front, first: readonly string[], headers: readonly string[]) {
  const before = front.seen.length
  const lines = [...first.slice(0, 1), ...front.lines, ...first.slice(1), ...headers]
  const text = await exchange(front, `${lines.join('\r\n')}\r\n\r\n`, (said) =>
    /^HTTP\/1\.1 101 [^]*\r\n\r\n/.test(said),
  )
  return { status: statusOf(text), requests: front.seen.slice(before) }
}

const namesIn = (raw: readonly string[]): string[] => raw.filter((_, index) => index % 2 === 0)

describe.each(frontNames)('the %s', (name) => {
  let front: Front
  beforeAll(async () => {
    front = await openFront(name)
  })
  afterAll(() => front.close())

  test.each(Object.entries(kinds))(
    'passes on no identity header of a client, by %s [SEC-R1401]',
    async (_kind, first) => {
      const own = ownOf(front)
      for (const spell of spellings) {
        const names = identityHeaderNames
          .map(([each]) => each)
          .filter((each) => !own.has(each.toLowerCase()))
          .filter((each) => front.name === 'guard' || !decided.test(each))
        // In parts: a request has at most 100 header lines.
        for (let from = 0; from < names.length; from += 60) {
          const lines = names.slice(from, from + 60).map((each) => `${spell(each)}: ${mark}`)
          const { status, requests } = await forwarded(front, first(front), lines)
          expect([status, requests.length]).toEqual([expect.any(Number), 1])
          const raw = requests[0]?.rawHeaders ?? []
          const passed = namesIn(raw).filter((_each, index) => raw[2 * index + 1]?.includes(mark))
          expect(passed).toEqual([])
        }
      }
    },
  )

  test('passes on what applications need [SEC-R1402]', async () => {
    const skipped = /^(?:origin|referer|content-|access-control|range|sec-fetch|expect)/i
    const lines = neededHeaderNames
      .filter((each) => !skipped.test(each))
      .map((each) => `${each}: needed`)
    for (const part of [lines.slice(0, 60), lines.slice(60)]) {
      const first = kinds['GET over HTTP/1.1']?.(front) ?? []
      const { requests } = await forwarded(front, first, part)
      const raw = requests[0]?.rawHeaders ?? []
      const passed = new Set(namesIn(raw).map((each) => each.toLowerCase()))
      const lost = part.map((line) => line.split(':')[0] ?? '')
      expect(lost.filter((each) => !passed.has(each.toLowerCase()))).toEqual([])
    }
  })

  test('passes on no trailer of a client, and none that Connection or Trailer names [SEC-R1404]', async () => {
    const lines = [
      'Transfer-Encoding: chunked',
      'Content-Type: text/plain',
      'Trailer: X-User, X-Authenticated-User',
      'Connection: close, X-Authenticated-User, Host, X-Forwarded-For',
      `X-User: ${mark}`,
    ]
    const before = front.seen.length
    const head = [`POST ${front.path} HTTP/1.1`, ...front.lines, ...lines].join('\r\n')
    const body = `2\r\nhi\r\n0\r\nX-User: ${mark}\r\nX-Authenticated-User: ${mark}\r\n\r\n`
    const text = await exchange(front, `${head}\r\n\r\n${body}`, () => false)
    const [request] = front.seen.slice(before)
    const names = namesIn(request?.rawHeaders ?? []).map((each) => each.toLowerCase())
    // The API server rejects a Connection header that names one that decides something; the others remove it.
    const rejects = front.name === 'service proxy'
    expect({
      status: statusOf(text),
      reachedBackend: request !== undefined,
      marked: JSON.stringify(request ?? null).includes(mark),
      hosts: names.filter((each) => each === 'host').length,
      forwardedFor: names.includes('x-forwarded-for'),
      user: names.includes('x-authenticated-user'),
    }).toEqual({
      status: rejects ? 400 : 200,
      reachedBackend: !rejects,
      marked: false,
      hosts: rejects ? 0 : 1,
      forwardedFor: !rejects,
      user: front.name === 'guard',
    })
  })

  test('passes on what the add-on declares, in that spelling only [SEC-R1403]', async () => {
    const declaring = await openFront(name, { allowedRequestHeaders: ['X-Auth-Token'] })
    try {
      const lines = ['X-Auth-Token: t', 'X_Auth_Token: u', 'X-Auth-User: v']
      const first = kinds['GET over HTTP/1.1']?.(declaring) ?? []
      const { requests } = await forwarded(declaring, first, lines)
      const raw = requests[0]?.rawHeaders ?? []
      const kept = raw.filter((_, index) => /auth.(?:token|user)$/i.test(raw[index - 1] ?? ''))
      expect(kept.filter((value) => value !== 'bob')).toEqual(['t'])
    } finally {
      await declaring.close()
    }
  })
})

test('over HTTP/2 the service proxy passes on none of them either [SEC-R1401]', async () => {
  const lab = await ServiceProxyLab.open()
  try {
    const seen: string[][] = []
    const backend = await lab.backend((request, response) => {
      seen.push(request.rawHeaders)
      response.end('ok')
    })
    const path = await lab.addon('app', backend)
    const admin = await lab.server.admin()
    const session = await admin.http2().catch(() => undefined)
    // Where the runtime hides malformed headers the port offers HTTP/1.1 only.
    if (!session || session.alpnProtocol !== 'h2') return
    for (const [each] of identityHeaderNames) {
      if (decided.test(each)) continue
      const headers = { ':path': path + '/', [each.toLowerCase()]: mark }
      expect((await requestOn(session, headers)).status).toBe(200)
    }
    expect(JSON.stringify(seen)).not.toContain(mark)
    session.close()
    await once(session, 'close')
  } finally {
    await lab.close()
  }
})

test('a Service that declares a header of ours, or no header at all, is a 503 [SEC-R1403]', async () => {
  const lab = await ServiceProxyLab.open()
  try {
    const backend = await lab.backend((_request, response) => void response.end('ok'))
    const admin = await lab.server.admin()
    for (const [index, text] of [
      'Authorization',
      'X-Remote-User',
      'X-Auth-Token,',
      '*',
    ].entries()) {
      const annotations = { 'sallyport.dev/allowed-request-headers': text }
      const path = await lab.addon(`app-${index}`, backend, { annotations })
      const { status, text: said } = await admin.get(`${path}/`)
      expect([status, said]).toEqual([503, expect.stringContaining('cannot allow')])
    }
  } finally {
    await lab.close()
  }
})

test('there is an address for the add-on of these tests', () => {
  expect(outwardAddress).toBeDefined()
})
