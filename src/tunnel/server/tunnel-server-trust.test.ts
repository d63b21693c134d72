import { once, setMaxListeners } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Logger, silentLogger } from '../../core/index.ts'
import { labAuthority, labClient } from '../../http/tls-lab.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'
import { sent, textOf } from './tunnel-talk.suite.ts'

const signal = new AbortController().signal
setMaxListeners(0, signal)
let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(async () => {
  await lab.close()
})

describe('who may connect as an agent', () => {
  test('[TUN-W4, TUN-W6] is told the server’s ID, the count and what it can do', async () => {
    await lab.start({
      config: { nodeTraffic: { isOn: true, allowedDestinations: [], sniRoutes: [] } },
    })
    const agent = await lab.agent()
    expect(agent.metadata['serverid']).toEqual(['server-1'])
    expect(agent.metadata['servercount']).toEqual(['3'])
    expect([...agent.capabilities]).toEqual(['rdial', 'credit', 'halfclose'])
  })

  test('[TUN-R21, TUN-W5] with the gate off no dial of an agent is on offer', async () => {
    await lab.start()
    const agent = await lab.agent()
    expect([...agent.capabilities]).toEqual(['credit', 'halfclose'])
  })

  test.each<[string, Record<string, string>]>([
    ['no agent ID', { agentid: '' }],
    ['identifiers that cannot be read', { agentidentifiers: 'host=%zz' }],
  ])('[TUN-W4, TUN-U11] nobody with %s', async (_name, metadata) => {
    await lab.start()
    await expect(lab.link(metadata)).rejects.toMatchObject({ grpcStatus: 2 })
  })

  test.each<[string, Record<string, string[]>]>([
    ['two agent IDs', { agentid: ['a', 'b'] }],
    ['two sets of identifiers', { agentid: ['a'], agentidentifiers: ['host=a', 'host=b'] }],
  ])('[TUN-W4] nobody with %s', async (_name, metadata) => {
    await lab.start()
    expect(await rawStatus(metadata)).toBe('2')
    expect(lab.server.load.agents).toBe(0)
  })

  /** The gRPC status that a client gets which writes its own headers. */
  async function rawStatus(metadata: Record<string, string[]>): Promise<string | undefined> {
    const { cert, key } = await labClient(lab.ca, 'agent')
    const session = connectHttp2(`https://127.0.0.1:${lab.server.ports.agents}`, {
      ca: lab.ca.bundlePem,
      cert,
      key,
    })
    lab.closeLater(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/AgentService/Connect',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...metadata,
    })
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    return headers['grpc-status']
  }

  test.each(['none', 'another CA'] as const)(
    '[TUN-F11] nobody with a certificate of %s',
    async (which) => {
      await lab.start()
      const other = await labAuthority('other CA')
      const shown = which === 'none' ? {} : await labClient(other, 'agent')
      const opening = lab.link({}, { tls: { ca: lab.ca.bundlePem, ...shown } })
      await expect(opening).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
    },
  )

  test('nobody of another organization, where one is asked for', async () => {
    const tls = {
      certFile: lab.path('server.crt'),
      keyFile: lab.path('server.key'),
      clientCaFile: lab.path('ca.crt'),
    }
    const local = { host: '127.0.0.1', port: 0, tls, keepaliveMs: 0 }
    await lab.start({ config: { agents: { ...local, organization: 'system:nodes' } } })
    // The lab's clients are of the organization dev.
    await expect(lab.link()).rejects.toMatchObject({ grpcStatus: 2 })
    await lab.server.stop(signal)
    await lab.start({ config: { agents: { ...local, organization: 'dev' } } })
    await lab.agent()
    expect(lab.server.load.agents).toBe(1)
  })

  test('[TUN-F11, TUN-F12] by token: the right account and no other', async () => {
    const view = new FakeClusterView({
      review: (_kind, object) => {
        const { token } = object['spec'] as { token: string }
        const username = `system:serviceaccount:ns:${token}`
        return {
          ...object,
          status: { authenticated: true, user: { username }, audiences: ['aud'] },
        }
      },
    })
    await lab.start({ view })
    const tls = { ca: lab.ca.bundlePem }
    await lab.agent({ authorization: 'Bearer sa' }, { tls })
    for (const metadata of [{}, { authorization: 'Bearer other' }, { authorization: 'sa' }]) {
      await expect(lab.link(metadata, { tls })).rejects.toMatchObject({
        grpcStatus: 2,
        message: expect.stringContaining('the agent could not be authenticated'),
      })
    }
    expect(lab.server.load.agents).toBe(1)
  })

  test('[TUN-F21] by token, for as long as that is good', async () => {
    const revoked = new Set<string>()
    const user = { username: 'system:serviceaccount:ns:sa' }
    const view = new FakeClusterView({
      review: (_kind, object) => {
        const { token } = object['spec'] as { token: string }
        const authenticated = !revoked.has(token)
        return { ...object, status: { authenticated, user, audiences: ['aud'] } }
      },
    })
    await lab.start({ view, reviewEveryMs: 50 })
    const tls = { ca: lab.ca.bundlePem }
    const lost = await lab.agent({ authorization: 'Bearer first' }, { tls })
    const kept = await lab.agent({ authorization: 'Bearer second' }, { tls })
    revoked.add('first')
    await lost.ended
    await lab.until(() => lab.server.load.agents === 1)
    const channel = await kept.dial('nowhere:1', { signal, deadlineMs: 5_000 }).catch(String)
    // It is refused, but it is answered: the other agent is still there.
    expect(channel).toContain('nowhere:1')
  })
})

test('[TUN-F11] an agent whose certificate TLS refuses is told in the log, and a knock without a word is not', async () => {
  const said: object[] = []
  const log: Logger = { ...silentLogger, warn: (fields) => void said.push(fields) }
  await lab.start({ log: { ...log, child: () => log } })
  const knock = connect(lab.server.ports.agents, '127.0.0.1')
  await once(knock, 'connect')
  knock.destroy()
  const foreign = await labClient(await labAuthority('other CA'), 'agent')
  const opening = lab.link({}, { tls: { ca: lab.ca.bundlePem, ...foreign } })
  await expect(opening).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
  await lab.until(() => said.length > 0)
  expect(said).toEqual([
    { from: '127.0.0.1', why: expect.stringContaining('a certificate that is not trusted here') },
  ])
})

describe('who may connect to the front end', () => {
  test.each(['grpc', 'http-connect'] as const)(
    'nobody without a client certificate (%s)',
    async (mode) => {
      await lab.start({ mode, tcp: true })
      const port = lab.server.ports.frontEnd
      const client = connectTls({ port, host: '127.0.0.1', ca: lab.ca.bundlePem })
      client.on('error', () => {})
      const closed = new Promise((resolve) => client.once('close', resolve))
      client.resume()
      client.write('CONNECT a:1 HTTP/1.1\r\n\r\n')
      await closed
      expect(lab.server.load.frontEndClients).toBe(0)
    },
  )
})

describe('[TUN-F13] certificates follow their files', () => {
  function recorded(): { readonly log: Logger; readonly said: string[] } {
    const said: string[] = []
    const note = (_fields: object, message: string): void => {
      said.push(message)
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

  const seenSerial = async (): Promise<string> => {
    const { cert, key } = await labClient(lab.ca, 'agent')
    const port = lab.server.ports.agents
    const client = connectTls({
      port,
      host: '127.0.0.1',
      cert,
      key,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    })
    client.on('error', () => {})
    await once(client, 'secureConnect')
    const { serialNumber } = client.getPeerCertificate()
    client.destroy()
    return serialNumber
  }

  test('a new certificate is shown to new connections, and open ones stay', async () => {
    const { log, said } = recorded()
    await lab.start({ log })
    const agent = await lab.agent()
    const before = await seenSerial()
    await lab.writeServing()
    await lab.until(() => said.includes('serving certificate replaced'))
    expect(await seenSerial()).not.toBe(before)
    expect(await textOf(await sent(lab, await lab.target()))).toBe('x')
    expect(agent.channelCount).toBe(0)
  })

  test('a broken one is reported, and the old one stays', async () => {
    const { log, said } = recorded()
    await lab.start({ log })
    const before = await seenSerial()
    await writeFile(lab.path('server.crt'), 'no certificate')
    await lab.until(() => said.some((line) => line.includes('the old one stays')))
    expect(await seenSerial()).toBe(before)
  })

  test('a new CA counts for new agents; a broken one does not', async () => {
    const { log, said } = recorded()
    await lab.start({ log })
    await writeFile(lab.path('ca.crt'), 'no CA')
    await lab.until(() => said.some((line) => line.includes('CA of clients is unfit')))
    await lab.agent()
    const other = await labAuthority('other CA')
    await writeFile(lab.path('ca.crt'), other.bundlePem)
    await lab.until(() => said.includes('CA of clients replaced') && lab.server.load.agents === 0)
    const tls = { ca: lab.ca.bundlePem, ...(await labClient(other, 'agent')) }
    await lab.agent({}, { tls })
    await expect(lab.link()).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
    expect(lab.server.load.agents).toBe(1)
  })
})
