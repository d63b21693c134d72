import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readBody } from '../../http/index.ts'
import { labAuthority, labMaterial, TlsLab } from '../../http/tls-lab.suite.ts'
import { Fairness } from '../fairness/fairness.ts'
import { defaultFairnessLimits } from '../limits.ts'
import { send } from '../routes/route.ts'
import { ConnectionGate } from './connection-gate.ts'
import { depsWith, recordingAudit, textOf } from './pipeline.suite.ts'
import { createPipeline } from './pipeline.ts'
import type { RouteHandler } from './types.ts'

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

const pods = '/api/v1/namespaces/a/pods'
const ann = { authorization: 'Bearer ann' }

/** Answers with the size of the body, once it is there. */
const sizeOfBody: RouteHandler = async ({ request }, response, signal) => {
  const body = await readBody(request, { maxBytes: 1_000, timeoutMs: 200, signal })
  send(response, 'text/plain', String(body.length))
}

describe('slow clients hold up nobody but themselves [GND-R93]', () => {
  const opening = `POST ${pods} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ann\r\n`

  test('50 that never finish their headers are cut off, while others are served', async () => {
    const { handle: onRequest } = createPipeline(depsWith())
    const limits = { headersTimeoutMs: 2_000 }
    const { port } = await lab.serve({ onRequest, limits })
    const slow = await Promise.all(Array.from({ length: 50 }, () => lab.connect(port)))
    for (const socket of slow) socket.write(opening)

    expect((await lab.fetch(port, { path: pods, headers: ann })).text).toBe('hello')
    const answers = await Promise.all(slow.map((socket) => textOf(socket)))
    expect(new Set(answers.map((text) => text.split('\r\n')[0]))).toEqual(
      new Set(['HTTP/1.1 408 Request Timeout']),
    )
  })

  test('bodies that do not come are a Status, free their place and are audited', async () => {
    const fairness = new Fairness({ ...defaultFairnessLimits, mutating: 8 })
    const audit = recordingAudit()
    const parts = depsWith({ resources: sizeOfBody, fairness, audit, requestTimeoutMs: 2_000 })
    const { port } = await lab.serve({ onRequest: createPipeline(parts).handle })
    const slow = await Promise.all([lab.connect(port), lab.connect(port)])
    for (const socket of slow) socket.write(`${opening}Content-Length: 100\r\n\r\nonly this`)
    const seen = slow.map((socket) => statusLine(socket))

    const bob = { method: 'POST', headers: { authorization: 'Bearer bob' }, body: 'quick' }
    expect((await lab.fetch(port, { path: pods, ...bob })).text).toBe('5')
    expect(await Promise.all(seen)).toEqual([
      'HTTP/1.1 504 Gateway Timeout',
      'HTTP/1.1 504 Gateway Timeout',
    ])
    for (const socket of slow) if (!socket.destroyed) await once(socket, 'close')
    expect(fairness.running('mutating')).toBe(0)
    expect(audit.stages.filter(({ code }) => code === 504)).toHaveLength(2)
  })

  test('a body over HTTP/2 that does not come ends its stream, not the connection', async () => {
    const { handle: onRequest } = createPipeline(
      depsWith({ resources: sizeOfBody, requestTimeoutMs: 2_000 }),
    )
    const { port } = await lab.serve({ http2: true, onRequest })
    const session = lab.http2(port)
    const slow = session.request({ ':path': pods, ':method': 'POST', ...ann })
    slow.write('only this')
    const quick = session.request({ ':path': pods, ':method': 'POST', ...ann })
    quick.end('quick')
    expect(await textOf(quick.setEncoding('utf8'))).toBe('5')
    const [headers] = await once(slow, 'response')
    expect(headers[':status']).toBe(504)
    const next = session.request({ ':path': pods, ...ann })
    expect(await textOf(next.setEncoding('utf8'))).toBe('0')
  })
})

test('one address cannot take all connections [GND-R83]', async () => {
  const gate = new ConnectionGate({ total: 100, perAddress: 3 })
  const { handle: onRequest } = createPipeline(depsWith())
  const { port } = await lab.serve({ onRequest, onConnection: gate.admit })
  const oldest = await lab.connect(port)
  const closed = once(oldest, 'close')
  for (let i = 0; i < 3; i++) await lab.connect(port)
  await closed
  expect([gate.open, gate.dropped]).toEqual([3, 1])
})

test.each([false, true])(
  'a connection counts as authenticated from its first proven request on, HTTP/2: %s [SEC-R606]',
  async (http2) => {
    const gate = new ConnectionGate({ total: 100, perAddress: 100 })
    const { handle: onRequest } = createPipeline(depsWith({ connections: gate }))
    const { port } = await lab.serve({ onRequest, onConnection: gate.admit, http2 })
    await lab.connect(port)
    if (http2)
      await textOf(
        lab
          .http2(port)
          .request({ ':path': pods, ...ann })
          .setEncoding('utf8'),
      )
    else {
      const socket = await lab.connect(port)
      socket.write(`GET ${pods} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ann\r\n\r\n`)
      await statusLine(socket)
    }
    expect([gate.open, gate.unauthenticated]).toEqual([2, 1])
  },
)

test('a header that may be there once and is there twice is refused', async () => {
  const { handle: onRequest } = createPipeline(depsWith())
  const { port } = await lab.serve({ onRequest })
  const socket = await lab.connect(port)
  socket.write(
    `GET ${pods} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ann\r\nAuthorization: Bearer bob\r\n\r\n`,
  )
  expect(await statusLine(socket)).toBe('HTTP/1.1 400 Bad Request')
})

async function statusLine(socket: TLSSocket): Promise<string | undefined> {
  const [first] = await once(socket, 'data')
  socket.resume()
  return String(first).split('\r\n')[0]
}
