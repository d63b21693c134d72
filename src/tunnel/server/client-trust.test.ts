import { X509Certificate } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { addRevocation, Revocations, type RevocationsOptions } from '../../authn/index.ts'
import { type Logger, silentLogger, systemClock } from '../../core/index.ts'
import { labAuthority, labClient } from '../../http/tls-lab.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import type { Link } from '../link/index.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'

const signal = new AbortController().signal
setMaxListeners(0, signal)

let lab: TunnelLab
let view: FakeClusterView
beforeEach(async () => {
  lab = await openTunnelLab()
  view = new FakeClusterView()
})
afterEach(() => lab.close())

/** The list of the cluster, followed. */
async function followed(
  staleness: RevocationsOptions['staleness'] = 'never',
): Promise<Revocations> {
  const revocations = new Revocations({ view, clock: systemClock, log: silentLogger, staleness })
  lab.closeLater(() => revocations.stop(signal))
  await revocations.start()
  return revocations
}

/** A log, and why connections were cut or refused according to it. */
function reasons(): { readonly log: Logger; readonly said: string[] } {
  const said: string[] = []
  const note = (fields: { why?: string }, message: string): void => {
    said.push(`${message}${fields.why === undefined ? '' : `: ${fields.why}`}`)
  }
  const log: Logger = {
    error: note,
    warn: note,
    info: note,
    debug: note,
    trace: note,
    child: () => log,
  }
  return { log, said }
}

interface Credential {
  readonly cert: string
  readonly key: string
}

const agentWith = (credential: Credential): Promise<Link> =>
  lab.agent({}, { tls: { ca: lab.ca.bundlePem, ...credential } })

const openAgent = (credential: Credential): Promise<Link> =>
  lab.link({}, { tls: { ca: lab.ca.bundlePem, ...credential } })

async function revoke(what: 'user' | 'certificate', { cert }: Credential): Promise<void> {
  const { serialNumber } = new X509Certificate(cert)
  const value = what === 'user' ? 'mallory' : serialNumber
  await addRevocation(view, { type: what, value }, signal)
}

/** A connection to the front end that CONNECTs to a target; ends with the head of the answer. */
async function connectThrough(
  address: string,
  credential: Credential,
): Promise<{ readonly client: TLSSocket; readonly status: string }> {
  const port = lab.server.ports.frontEnd
  const client = connectTls({ port, host: '127.0.0.1', ca: lab.ca.bundlePem, ...credential })
  client.on('error', () => {})
  lab.closeLater(() => client.destroy())
  await once(client, 'secureConnect')
  client.write(`CONNECT ${address} HTTP/1.1\r\n\r\n`)
  const [head] = (await once(client, 'data')) as [Buffer]
  return { client, status: head.toString().split(' ')[1] ?? '' }
}

const gone = (socket: TLSSocket): Promise<unknown> =>
  new Promise((resolve) => socket.once('close', resolve).resume())

describe.each(['user', 'certificate'] as const)('[TUN-F16] revoked by %s', (what) => {
  test('an agent is refused, and nobody else is', async () => {
    const { log, said } = reasons()
    await lab.start({ revocations: await followed(), log })
    const mallory = await labClient(lab.ca, 'mallory')
    await revoke(what, mallory)
    await expect
      .poll(() => openAgent(mallory).catch((error) => error))
      .toMatchObject({
        grpcStatus: 2,
        message: expect.stringContaining('the agent could not be authenticated'),
      })
    expect(said.at(-1)).toMatch(/^agent refused: .*"mallory" or its user is revoked$/)
    await agentWith(await labClient(lab.ca, 'alice'))
    expect(lab.server.load.agents).toBe(1)
  })

  test('an open agent is cut, and nobody else is', async () => {
    const { log, said } = reasons()
    await lab.start({ revocations: await followed(), log })
    const mallory = await labClient(lab.ca, 'mallory')
    const cut = await agentWith(mallory)
    await agentWith(await labClient(lab.ca, 'alice'))
    await revoke(what, mallory)
    await cut.ended
    await lab.until(() => lab.server.load.agents === 1)
    expect(said.join('\n')).toMatch(/a connection is cut: .*"mallory" or its user is revoked/)
  })

  test('a client of the CONNECT front end is cut, and refused from then on', async () => {
    await lab.start({ mode: 'http-connect', tcp: true, revocations: await followed() })
    await lab.agent()
    const target = await lab.target()
    const mallory = await labClient(lab.ca, 'mallory')
    const { client, status } = await connectThrough(target, mallory)
    expect(status).toBe('200')
    const cut = gone(client)
    await revoke(what, mallory)
    await cut
    expect((await connectThrough(target, mallory)).status).toBe('403')
    expect((await connectThrough(target, await labClient(lab.ca, 'alice'))).status).toBe('200')
  })

  test('a client of the gRPC front end is cut, and refused from then on', async () => {
    await lab.start({ tcp: true, revocations: await followed() })
    const mallory = await labClient(lab.ca, 'mallory')
    const tls = { ca: lab.ca.bundlePem, ...mallory }
    const link = await lab.frontEndLink(tls)
    await revoke(what, mallory)
    await link.ended
    await expect(lab.frontEndLink(tls)).rejects.toMatchObject({ grpcStatus: 2 })
  })
})

test('[TUN-F16] while nobody can know who is revoked, no agent is let in and open ones are cut', async () => {
  const { log, said } = reasons()
  const staleness = { maxAgeMs: 1_000, confirmEveryMs: 20 }
  await lab.start({ revocations: await followed(staleness), log })
  const alice = await labClient(lab.ca, 'alice')
  const open = await agentWith(alice)
  view.fail(new Error('the cluster is away'))
  await open.ended
  expect(said.join('\n')).toMatch(/a connection is cut: it cannot be known whether/)
  await expect(openAgent(alice)).rejects.toMatchObject({ grpcStatus: 2 })
  view.fail(undefined)
  await expect.poll(() => openAgent(alice).then(() => 'in', String)).toBe('in')
})

describe('[TUN-F17] a CA that is dropped from its file', () => {
  async function replaceCas(...pems: string[]): Promise<void> {
    await writeFile(lab.path('ca.crt'), pems.join('\n'))
  }

  test('cuts the agents that it vouched for, and no others', async () => {
    const { log, said } = reasons()
    await lab.start({ log })
    const other = await labAuthority('other CA')
    const cut = await lab.agent()
    await replaceCas(lab.ca.bundlePem, other.bundlePem)
    await lab.until(() => said.includes('CA of clients replaced'))
    await agentWith(await labClient(other, 'agent of the new CA'))
    expect(lab.server.load.agents).toBe(2)
    await replaceCas(other.bundlePem)
    await cut.ended
    await lab.until(() => lab.server.load.agents === 1)
    expect(said.join('\n')).toMatch(/a connection is cut: the certificate is not signed by a CA/)
  })

  test.each(['grpc', 'http-connect'] as const)(
    'cuts clients of the front end (%s)',
    async (mode) => {
      await lab.start({ mode, tcp: true })
      await lab.agent()
      const client = await labClient(lab.ca, 'kube-apiserver')
      const ended =
        mode === 'grpc'
          ? (await lab.frontEndLink({ ca: lab.ca.bundlePem, ...client })).ended
          : gone((await connectThrough(await lab.target(), client)).client)
      await replaceCas((await labAuthority('other CA')).bundlePem)
      await ended
      // Agents are under the same CA here.
      await lab.until(() => lab.server.load.agents === 0)
      await vi.waitFor(() => expect(lab.server.load.frontEndClients).toBe(0))
    },
  )

  test('does not let in who has begun the handshake before', async () => {
    const { log, said } = reasons()
    await lab.start({ log })
    const port = lab.server.ports.agents
    const early = connect(port, '127.0.0.1')
    lab.closeLater(() => early.destroy())
    await once(early, 'connect')
    // Accepted in order: once this one is in, the early one is as well.
    await lab.agent()
    await replaceCas((await labAuthority('other CA')).bundlePem)
    await lab.until(() => said.includes('CA of clients replaced'))
    const credential = await labClient(lab.ca, 'agent')
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      createConnection: () =>
        connectTls({ socket: early, ca: lab.ca.bundlePem, ...credential, ALPNProtocols: ['h2'] }),
    })
    lab.closeLater(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/AgentService/Connect',
      'content-type': 'application/grpc',
      te: 'trailers',
      agentid: 'late',
    })
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    expect(headers['grpc-status']).toBe('2')
    expect(said.at(-1)).toMatch(/^agent refused: the certificate is not signed by a CA/)
  })
})
