import { createHash, randomBytes } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { labClient } from '../../http/tls-lab.suite.ts'
import { duplexOf } from '../link/index.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'
import { echoOverGrpc, nextText, textOf } from './tunnel-talk.suite.ts'

const signal = new AbortController().signal
setMaxListeners(0, signal)
const dialOptions = { signal, deadlineMs: 5_000 }
const established = 'HTTP/1.1 200 Connection Established\r\n\r\n'

/** Goes on to the socket, though the types of TLS do not know it. */
const halfOpen: object = { allowHalfOpen: true }
let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(async () => {
  await lab.close()
})

describe('[TUN-U1] through agent and server to a target and back', () => {
  test('[TUN-W21] gRPC on a unix socket', async () => {
    await lab.start()
    await lab.agent()
    const address = await lab.target()
    expect(await echoOverGrpc(await lab.frontEndLink(), address, 'hello')).toBe('hello')
    expect((await stat(lab.socketPath)).mode & 0o777).toBe(0o770)
    const page = await lab.metrics()
    expect(page).toContain('grpc_connections{service_method="Connect"} 1\n')
    expect(page).toContain('dial_duration_seconds_count 1\n')
    expect(page).toContain('stream_packets_total{segment="from_client",packet_type="DIAL_REQ"} 1\n')
    expect(page).toContain('stream_packets_total{segment="to_agent",packet_type="DIAL_REQ"} 1\n')
    expect(page).toContain('stream_packets_total{segment="from_agent",packet_type="DIAL_RSP"} 1\n')
  })

  test('[TUN-W21] gRPC with the path of the socket as authority, as kube-apiserver has it', async () => {
    await lab.start()
    const session = connectHttp2('http://localhost', {
      createConnection: () => connect(lab.socketPath),
    })
    lab.closeLater(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/ProxyService/Proxy',
      ':authority': encodeURIComponent(lab.socketPath),
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect([headers[':status'], headers['grpc-status']]).toEqual([200, undefined])
  })

  test('[TUN-W21] gRPC with TLS', async () => {
    await lab.start({ tcp: true })
    await lab.agent()
    const { cert, key } = await labClient(lab.ca, 'kube-apiserver')
    const link = await lab.frontEndLink({ ca: lab.ca.bundlePem, cert, key })
    expect(await echoOverGrpc(link, await lab.target(), 'hello')).toBe('hello')
  })

  test('[TUN-W22] CONNECT on a unix socket', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    client.end('hello')
    expect(await textOf(client)).toBe('hello')
    expect((await stat(lab.socketPath)).mode & 0o777).toBe(0o770)
  })

  test('[TUN-W22] CONNECT with TLS', async () => {
    await lab.start({ mode: 'http-connect', tcp: true })
    await lab.agent()
    const address = await lab.target()
    const { cert, key } = await labClient(lab.ca, 'kube-apiserver')
    const port = lab.server.ports.frontEnd
    const client = connectTls({
      port,
      host: '127.0.0.1',
      ca: lab.ca.bundlePem,
      cert,
      key,
      ...halfOpen,
    })
    await once(client, 'secureConnect')
    client.write(`CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
    expect(await nextText(client)).toBe(established)
    // The end of our direction leaves the other one open, through TLS as well.
    client.end('hello')
    expect(await textOf(client)).toBe('hello')
  })

  test('with an agent that offers a protocol of its own before h2', async () => {
    await lab.start()
    const { cert, key } = await labClient(lab.ca, 'agent')
    await lab.agent({}, { tls: { ca: lab.ca.bundlePem, cert, key, alpn: ['proto1'] } })
    expect(await echoOverGrpc(await lab.frontEndLink(), await lab.target(), 'hello')).toBe('hello')
  })

  test('inside the same process', async () => {
    await lab.start({ config: { strategies: ['least-loaded'] } })
    await lab.agent()
    const [host = '', port] = (await lab.target()).split(':')
    const stream = await lab.server.dialer.dial({ host, port: Number(port) }, signal)
    stream.end('hello')
    expect(await textOf(stream)).toBe('hello')
  })
})

test('much goes both ways at once, whole and in order', async () => {
  await lab.start({ mode: 'http-connect' })
  await lab.agent()
  const sent = randomBytes(8 * 1024 * 1024)
  const client = await lab.connectClient(await lab.target())
  expect(await nextText(client)).toBe(established)
  client.end(sent)
  const hash = createHash('sha256')
  for await (const chunk of client) hash.update(chunk as Buffer)
  expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'))
})

describe('[TUN-P12] what was sent before a close arrives', () => {
  const size = 4 * 1024 * 1024

  /** A target that counts what it gets, to its end. */
  async function countingTarget(): Promise<{ address: string; count: Promise<number> }> {
    let done: (count: number) => void = () => {}
    const count = new Promise<number>((resolve) => {
      done = resolve
    })
    const address = await lab.target((socket) => {
      let got = 0
      socket.on('data', (chunk) => {
        got += chunk.length
      })
      socket.on('end', () => {
        socket.end()
        done(got)
      })
    })
    return { address, count }
  }

  test('at the target, from a CONNECT client that ends', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const { address, count } = await countingTarget()
    const client = await lab.connectClient(address)
    await nextText(client)
    client.end(Buffer.alloc(size))
    expect(await count).toBe(size)
  })

  test('at the target, from a gRPC client that closes', async () => {
    await lab.start()
    await lab.agent()
    const { address, count } = await countingTarget()
    const link = await lab.frontEndLink()
    duplexOf(await link.dial(address, dialOptions)).end(Buffer.alloc(size))
    expect(await count).toBe(size)
  })

  test('at a CONNECT client, from a target that ends', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const client = await lab.connectClient(
      await lab.target((socket) => socket.resume().end(Buffer.alloc(size))),
    )
    let got = 0
    for await (const chunk of client) got += (chunk as Buffer).length
    expect(got).toBe(established.length + size)
  })

  test('at a gRPC client, from a target that ends', async () => {
    await lab.start()
    await lab.agent()
    const address = await lab.target((socket) => socket.resume().end(Buffer.alloc(size)))
    const stream = duplexOf(await (await lab.frontEndLink()).dial(address, dialOptions))
    let got = 0
    for await (const chunk of stream) got += (chunk as Buffer).length
    expect(got).toBe(size)
  })
})

describe('[TUN-U2] a dial that fails', () => {
  test('[TUN-W8] without an agent, over gRPC', async () => {
    await lab.start()
    const link = await lab.frontEndLink()
    await expect(link.dial('127.0.0.1:1', dialOptions)).rejects.toMatchObject({
      reason: 'refused-by-peer',
      text: 'No agent available',
    })
    expect(await lab.metrics()).toContain('dial_failure_count{reason="no_agent"} 1\n')
  })

  test('at the target, over gRPC', async () => {
    await lab.start()
    await lab.agent()
    const link = await lab.frontEndLink()
    await expect(link.dial('127.0.0.1:1', dialOptions)).rejects.toThrow('ECONNREFUSED')
    expect(await lab.metrics()).toContain('dial_failure_count{reason="error_response"} 1\n')
  })

  test('[TUN-W24] at the target, over CONNECT', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const text = await textOf(await lab.connectClient('127.0.0.1:1'))
    expect(text).toMatch(/^HTTP\/1.1 502 .*ECONNREFUSED/s)
  })
})

describe('[TUN-U4] a dial that is cancelled', () => {
  test('leaves nothing behind', async () => {
    await lab.start()
    const agent = await lab.agent({}, { isSilent: true })
    const link = await lab.frontEndLink()
    const client = new AbortController()
    const dialling = link.dial('127.0.0.1:1', { signal: client.signal, deadlineMs: 5_000 })
    await lab.until(() => agent.pendingDialCount === 0 && lab.server.load.pendingDials === 1)
    client.abort()
    await expect(dialling).rejects.toMatchObject({ reason: 'cancelled' })
    await lab.until(() => lab.server.load.pendingDials === 0)
    expect(await lab.metrics()).toContain('dial_failure_count{reason="frontend_close"} 1\n')
  })

  test('fifty times at once leaves nothing behind', async () => {
    await lab.start()
    await lab.agent({}, { isSilent: true })
    const links = await Promise.all(Array.from({ length: 50 }, () => lab.frontEndLink()))
    const client = new AbortController()
    setMaxListeners(0, client.signal)
    const dials = links.map((link) =>
      link.dial('127.0.0.1:1', { signal: client.signal, deadlineMs: 5_000 }),
    )
    await lab.until(() => lab.server.load.pendingDials === 50)
    client.abort()
    await Promise.allSettled(dials)
    await lab.until(() => lab.server.load.pendingDials === 0)
    expect(await lab.metrics()).toContain('dial_failure_count{reason="frontend_close"} 50\n')
  })

  test('[TUN-U3] also when its front end just goes away', async () => {
    await lab.start()
    await lab.agent({}, { isSilent: true })
    const link = await lab.frontEndLink()
    const dialling = link.dial('127.0.0.1:1', dialOptions)
    dialling.catch(() => {})
    await lab.until(() => lab.server.load.pendingDials === 1)
    link.close()
    await lab.until(() => lab.server.load.pendingDials === 0)
    expect(await lab.metrics()).toContain('dial_failure_count{reason="frontend_close"} 1\n')
  })
})
