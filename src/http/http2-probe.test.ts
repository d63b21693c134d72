import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { malformedFieldsOf, requestsWith } from '../../test/support/http2-frames.ts'
import { deliversMalformedHeaders } from './http2-probe.ts'
import { echo, labAuthority, labMaterial, TlsLab } from './tls-lab.suite.ts'

let ca: Awaited<ReturnType<typeof labAuthority>>
let material: Awaited<ReturnType<typeof labMaterial>>
let lab: TlsLab

beforeAll(async () => {
  ca = await labAuthority()
  material = await labMaterial(ca)
})
beforeEach(() => {
  lab = new TlsLab(ca, material)
})
afterEach(() => lab.close())

test('the probe finds what a client of a forced HTTP/2 server sees [SEC-R302]', async () => {
  const fields = malformedFieldsOf('x-remote-user', 'a')
  const served = new Map<string, readonly string[]>()
  const { port } = await lab.serve({
    http2: true,
    onRequest: (request, response) => {
      served.set(request.url ?? '', request.rawHeaders)
      response.end()
    },
  })
  const socket = await lab.connect(port, { ALPNProtocols: ['h2'] })
  await requestsWith(
    socket,
    (index) => `/${index}`,
    fields.map((field) => [field]),
  )
  const dropped = fields.filter(([name, value], index) => {
    const raw = served.get(`/${index}`)
    return raw !== undefined && !raw.some((each, at) => each === name && raw[at + 1] === value)
  })
  expect(served.has(`/${fields.length}`)).toBe(true)
  expect(await deliversMalformedHeaders()).toBe(dropped.length === 0)
})

test.each([
  [false, 'http/1.1'],
  [true, 'h2'],
])('a server with http2: %s negotiates %s', async (http2, protocol) => {
  const { port } = await lab.serve({ onRequest: echo, http2 })
  const socket = await lab.connect(port, { ALPNProtocols: ['h2', 'http/1.1'] })
  expect(socket.alpnProtocol).toBe(protocol)
})

test('a server without HTTP/2 ends the handshake of a client that speaks nothing else', async () => {
  const { port } = await lab.serve({ onRequest: echo, http2: false })
  await expect(lab.connect(port, { ALPNProtocols: ['h2'] })).rejects.toThrow(/alert/)
})

test('a server without HTTP/2 does not take the preface of HTTP/2 for a request', async () => {
  let requests = 0
  const { port } = await lab.serve({
    http2: false,
    onRequest: (_request, response) => {
      requests++
      response.end()
    },
  })
  const socket = await lab.connect(port)
  const fates = await requestsWith(socket, () => '/', [[['impersonate-user', 'a ']]])
  expect([fates, requests]).toEqual([['lost'], 0])
})
