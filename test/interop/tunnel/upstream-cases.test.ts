import { createHash } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FrontMode } from '../../../bench/tunnel/pairs-flags.ts'
import { openBlackhole } from '../../support/blackhole.ts'
import { eventually } from '../../support/eventually.ts'
import { echoTarget, httpTarget, type TcpTarget, tcpTarget } from '../../support/tcp-target.ts'
import { DialRefused, exchange, readBytes } from '../../support/tunnel-front.ts'
import { type TunnelAgent, TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const modes: readonly FrontMode[] = ['grpc', 'http-connect']
const cases = pairs.flatMap((pair) => modes.map((mode) => [pair.name, mode, pair] as const))
const server_ = 'konnectivity_network_proxy_server_'
const agent_ = 'konnectivity_network_proxy_agent_'

/** Why a dial failed, whatever the front end: the text, and the library's reason or the status. */
async function refusal(dialing: Promise<unknown>): Promise<{ text: string; why: unknown }> {
  const error: unknown = await dialing.then(
    () => undefined,
    (failed: unknown) => failed,
  )
  if (!(error instanceof DialRefused)) throw new Error('the dial was not refused', { cause: error })
  if (!error.text.startsWith('{')) return { text: error.text, why: error.status }
  const told = JSON.parse(error.text)
  return { text: told.error, why: told.reason }
}

describe.skipIf(!tunnelPeersAreHere).each(cases)('%s, %s', (_name, mode, pair) => {
  const isGrpc = mode === 'grpc'
  let lab: TunnelLab
  let server: TunnelServer
  let agent: TunnelAgent
  const targets: TcpTarget[] = []

  const target = async (opening: Promise<TcpTarget>): Promise<TcpTarget> => {
    const opened = await opening
    targets.push(opened)
    return opened
  }

  beforeAll(async () => {
    lab = await TunnelLab.open()
    server = await lab.server({ maker: pair.server, mode })
    agent = await lab.agent({ maker: pair.agent, port: server.place.agentPort })
    await lab.ready(server)
  })

  afterAll(async () => {
    await Promise.all(targets.map((each) => each.close()))
    await lab.close()
  })

  /** What upstream's tests check by goroutines: nothing is left on either end. */
  const nothingIsLeft = async (): Promise<void> => {
    const gauges = [
      [server, `${server_}established_connections`],
      [server, `${server_}pending_backend_dials`],
      [agent, `${agent_}open_endpoint_connections`],
    ] as const
    await eventually('nothing left on either end', async () => {
      const values = await Promise.all(
        gauges.map(async ([end, name]) => (await end.metrics()).get(name) ?? 0),
      )
      if (values.every((value) => value === 0)) return true
      throw new Error(`left: ${gauges.map(([, name], at) => `${name} ${values[at]}`).join(', ')}`)
    })
  }

  const failures = async (reason: string): Promise<number> =>
    (await server.metrics()).get(`${server_}dial_failure_count{reason="${reason}"}`) ?? 0

  const endpointFailures = async (reason: string): Promise<number> =>
    (await agent.metrics()).get(`${agent_}endpoint_dial_failure_total{reason="${reason}"}`) ?? 0

  test('TestBasicProxy: a GET is answered, and nothing is left [TUN-U1, TUN-I7]', async () => {
    const web = await target(httpTarget((_request, response) => response.end('hello')))
    const socket = await server.dial(web.address)
    socket.write('GET / HTTP/1.0\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\nhello$/)
    await nothingIsLeft()
  })

  test('TestEchoServer: bytes come back in parts and in order [TUN-U1]', async () => {
    const echo = await target(echoTarget())
    const socket = await server.dial(echo.address)
    expect(await exchange(socket, 'ping')).toBe('ping')
    socket.write('one two three')
    expect(await readBytes(socket, 4)).toBe('one ')
    expect(await readBytes(socket, 9)).toBe('two three')
    socket.destroy()
    await nothingIsLeft()
  })

  test('TestProxyHandleDialError, TestFailedDial: a closed port is refused [TUN-U2]', async () => {
    const gone = await tcpTarget(() => {})
    await gone.close()
    const [before, atAgent] = [await failures('error_response'), await endpointFailures('unknown')]
    const { text, why } = await refusal(server.dial(gone.address))
    expect(text).toContain('connection refused')
    expect(why).toBe(isGrpc ? 'endpoint' : 502)
    expect(await failures('error_response')).toBe(before + 1)
    expect(await endpointFailures('unknown')).toBe(atAgent + 1)
    await nothingIsLeft()
  })

  test('TestFailedDNSLookup: a name that does not exist [TUN-U2]', async () => {
    const { text, why } = await refusal(server.dial('does-not-exist.invalid:80'))
    expect(text).toContain('no such host')
    expect(why).toBe(isGrpc ? 'endpoint' : 502)
    await nothingIsLeft()
  })

  test('TestProxyHandle_RequestDeadlineExceeded, _TunnelContextCancelled: a client that gives up closes the connection to the target [TUN-U3]', async () => {
    const silent = await target(httpTarget(() => {}))
    const accepted = silent.accepted()
    const socket = await server.dial(silent.address)
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    const far = await accepted
    await once(far, 'data')
    const closed = once(far, 'close')
    socket.destroy()
    await closed
    expect(silent.open.size).toBe(0)
    await nothingIsLeft()
  })

  test('TestProxyDial_AgentTimeout: a target that never answers fails after 5 s [TUN-U5]', async () => {
    const hole = await openBlackhole()
    try {
      const before = [await failures('error_response'), await endpointFailures('timeout')]
      const began = performance.now()
      const { text, why } = await refusal(server.dial(hole.address))
      const took = performance.now() - began
      expect(text).toContain('i/o timeout')
      expect(why).toBe(isGrpc ? 'endpoint' : 504)
      expect(took).toBeGreaterThan(4_500)
      expect(took).toBeLessThan(8_000)
      const after = [await failures('error_response'), await endpointFailures('timeout')]
      expect(after).toEqual(before.map((count) => count + 1))
      await nothingIsLeft()
    } finally {
      await hole.close()
    }
  })

  test('TestProxyDial_RequestCancelled: fifty dials that are given up are forgotten [TUN-U4, TUN-U3]', async () => {
    const hole = await openBlackhole()
    try {
      const before = await failures('frontend_close')
      const leaving = new AbortController()
      setMaxListeners(50, leaving.signal)
      const dials = Array.from({ length: 50 }, () => server.dial(hole.address, leaving.signal))
      const outcomes = Promise.allSettled(dials)
      await eventually('50 dials pending', async () => {
        return (await server.metrics()).get(`${server_}pending_backend_dials`) === 50
      })
      leaving.abort()
      for (const { status } of await outcomes) expect(status).toBe('rejected')
      await nothingIsLeft()
      // Upstream's server counts those only whose DIAL_CLS was faster than the end of their stream.
      const atLeast = pair.server === 'ours' ? before + 50 : before
      expect(await failures('frontend_close')).toBeGreaterThanOrEqual(atLeast)
    } finally {
      await hole.close()
    }
  })

  test('TestProxy_LargeResponse, _Concurrency: ten clients, 2 MiB and 10 MiB each [TUN-U6]', async () => {
    const bytes = Buffer.alloc(10 << 20, 'every byte counts ')
    const large = await target(
      httpTarget((request, response) =>
        response.end(bytes.subarray(0, Number(request.url?.slice(1)))),
      ),
    )
    const wanted = (size: number): string =>
      createHash('sha256').update(bytes.subarray(0, size)).digest('hex')
    const fetchHash = async (size: number): Promise<string> => {
      const socket = await server.dial(large.address)
      socket.write(`GET /${size} HTTP/1.0\r\n\r\n`)
      const parts: Buffer[] = []
      for await (const chunk of socket) parts.push(chunk)
      const answer = Buffer.concat(parts)
      const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4)
      return createHash('sha256').update(body).digest('hex')
    }
    for (const size of [2 << 20, 10 << 20]) {
      const hashes = await Promise.all(Array.from({ length: 10 }, () => fetchHash(size)))
      expect(new Set(hashes)).toEqual(new Set([wanted(size)]))
    }
    await nothingIsLeft()
  })

  test('TestConcurrentClientRequest: of 100 clients everyone gets its own answer [TUN-U6]', async () => {
    const web = await target(
      httpTarget((request, response) => response.end(`for ${request.url} only`)),
    )
    const ask = async (client: number): Promise<string> => {
      const socket = await server.dial(web.address)
      socket.write(`GET /${client} HTTP/1.0\r\n\r\n`)
      let text = ''
      for await (const chunk of socket) text += String(chunk)
      return text.split('\r\n\r\n')[1] ?? ''
    }
    const answers = await Promise.all(Array.from({ length: 100 }, (_, client) => ask(client)))
    expect(answers).toEqual(answers.map((_, client) => `for /${client} only`))
    await nothingIsLeft()
  })

  test('both ends are alive and logged no failure of their own', async () => {
    expect([server.program.isGone, agent.program.isGone]).toEqual([false, false])
    expect(await failures('send_rsp')).toBe(0)
  })
})
