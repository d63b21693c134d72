import { once } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { get, type LabServer, TransportLab, textOf } from './transport-lab.suite.ts'

let lab: TransportLab
beforeAll(async () => {
  lab = await TransportLab.open()
})
afterEach(() => lab.clear())

const watch = () => get('/pods?watch=true')

/** Begins an answer that never ends. */
const watching = (limits: object = {}): Promise<LabServer> =>
  lab.serve((_request, response) => response.write('{}\n'), limits)

/** Something on the way to a server that can stop to pass anything on, with its connections left open. */
async function openRelay(to: LabServer): Promise<{ server: LabServer; freeze: () => void }> {
  const sockets: Socket[] = []
  const relay = createServer((near) => {
    const far = connect(to.port, '127.0.0.1')
    for (const socket of [near, far]) sockets.push(socket.on('error', () => {}))
    near.pipe(far).pipe(near)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  lab.own({
    destroy: () => {
      for (const socket of sockets) socket.destroy()
      relay.close()
    },
  })
  const { port } = relay.address() as AddressInfo
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause()
  }
  return { server: { ...to, url: `https://127.0.0.1:${port}` }, freeze }
}

describe('an HTTP/2 connection with an open request [CRED-T8]', () => {
  test('that leads nowhere is found dead by a ping, and the request fails', async () => {
    const { server, freeze } = await openRelay(await watching())
    const heartbeat = { everyMs: 20, withinMs: 100 }
    const { body } = await lab.transport(server, { heartbeat }).send(watch())
    await once(body, 'data')
    freeze()
    await expect(textOf(body)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('that lives is asked again and again, and kept; without a request nobody asks', async () => {
    const server = await watching()
    let pings = 0
    let enough = (): void => {}
    const asked = new Promise<void>((resolve) => (enough = resolve))
    server.server.on('session', (session: ServerHttp2Session) =>
      session.on('ping', () => {
        pings++
        if (pings === 5) enough()
      }),
    )
    const heartbeat = { everyMs: 5, withinMs: 10_000 }
    const transport = lab.transport(server, { heartbeat })
    const { body } = await transport.send(watch())
    await asked
    expect(body.destroyed).toBe(false)
    const closed = once(body, 'close')
    body.destroy()
    await closed
    // Another connection's round trip is more than a ping of the first would take.
    await transport.send(get('/x'))
    const before = pings
    await transport.send(get('/x'))
    expect(pings - before).toBeLessThan(2)
    expect(server.connections()).toBe(3)
  })
})

describe('HTTP/2 connections', () => {
  test('are as many as the streams that the server allows make necessary, from a cold start too', async () => {
    const server = await watching({ settings: { maxConcurrentStreams: 10 } })
    const transport = lab.transport(server)
    const answers = await Promise.all(Array.from({ length: 35 }, () => transport.send(watch())))
    expect(answers.map(({ status }) => status)).toEqual(Array(35).fill(200))
    expect(server.connections()).toBe(4)
  })

  test('are bounded: what finds no place waits for one, and can be given up', async () => {
    const server = await watching({ settings: { maxConcurrentStreams: 2 } })
    const transport = lab.transport(server, { maxConnections: 2 })
    const open = await Promise.all(Array.from({ length: 4 }, () => transport.send(watch())))
    const enough = new AbortController()
    const given = transport.send({ ...watch(), signal: enough.signal })
    const waiting = transport.send(watch())
    enough.abort(new Error('enough'))
    await expect(given).rejects.toThrow('enough')
    open[0]?.body.destroy()
    expect((await waiting).status).toBe(200)
    expect(server.connections()).toBe(2)
  })

  test('to a server that allows no streams are none', async () => {
    const server = await watching({ settings: { maxConcurrentStreams: 0 } })
    await expect(lab.transport(server).send(watch())).rejects.toThrow('allows no streams')
  })
})
