import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../core/index.ts'
import type { ConnectLinkOptions } from '../../link/index.ts'
import { AgentLab, LogLines, labCa } from '../agent-lab.suite.ts'
import { FakeLink, type FakeLinkOptions } from '../fake-link.suite.ts'
import type { Connect } from './connect-server.ts'

let lab: AgentLab
let lines: LogLines

beforeEach(async () => {
  lab = await AgentLab.open()
  lines = new LogLines()
})

afterEach(() => lab.close())

/** Servers behind addresses: each connect is answered by the next link of its address. */
class FakeServers {
  readonly asked: ConnectLinkOptions[] = []
  readonly links: FakeLink[] = []
  readonly #answer: (options: ConnectLinkOptions, count: number) => FakeLinkOptions | Error
  #waiting: { readonly count: number; readonly tell: () => void }[] = []

  constructor(answer: (options: ConnectLinkOptions, count: number) => FakeLinkOptions | Error) {
    this.#answer = answer
  }

  readonly connect: Connect = (options) => {
    this.asked.push(options)
    const answer = this.#answer(options, this.asked.length)
    for (const { count, tell } of this.#waiting) if (this.asked.length >= count) tell()
    if (answer instanceof Error) return Promise.reject(answer)
    const link = new FakeLink(answer)
    this.links.push(link)
    return Promise.resolve(link)
  }

  /** Resolves when so many connects have been tried. */
  tried(count: number): Promise<void> {
    if (this.asked.length >= count) return Promise.resolve()
    return new Promise((tell) => {
      this.#waiting.push({ count, tell })
    })
  }
}

/** A clock that jumps on, so that names are resolved in every round. */
function rushing(): Clock {
  let time = 0
  return {
    now: () => systemClock.now(),
    monotonic: () => {
      time += 60_000
      return time
    },
  }
}

/** Addresses of a name that is resolved in every round of the agent. */
class Rounds {
  #left = new Map<() => void, number>()
  readonly #addresses: readonly string[]

  constructor(addresses: readonly string[]) {
    this.#addresses = addresses
  }

  readonly resolve = (): Promise<readonly string[]> => {
    for (const [tell, left] of this.#left) {
      if (left === 1) tell()
      this.#left.set(tell, left - 1)
    }
    return Promise.resolve(this.#addresses)
  }

  /** Resolves after so many more rounds. */
  seen(count: number): Promise<void> {
    return new Promise((tell) => this.#left.set(tell, count))
  }
}

const limit = (): AbortSignal => AbortSignal.timeout(4_000)

async function start(servers: FakeServers, ...argv: string[]) {
  const agent = await lab.agent(argv, { connect: servers.connect, log: lines.log })
  await agent.start()
  return agent
}

test('[TUN-W15] one link per server: a duplicate is closed, the oldest is kept', async () => {
  const ids = ['a', 'a', 'b']
  const servers = new FakeServers((_, count) => ({
    serverIds: [ids[count - 1] ?? 'b'],
    serverCounts: ['2'],
  }))
  const agent = await start(servers)
  await servers.tried(3)
  await lines.seen('connected to a tunnel server', 2)
  expect(agent.servers).toEqual(['a', 'b'])
  expect(servers.links.map((link) => link.isClosed)).toEqual([false, true, false])
})

describe('[TUN-W15] when there are links enough', () => {
  test('no more are opened', async () => {
    const servers = new FakeServers(() => ({ serverIds: ['a'], serverCounts: ['1'] }))
    const rounds = new Rounds(['127.0.0.1'])
    const agent = await lab.agent(['--proxy-server-host=tunnel.test'], {
      connect: servers.connect,
      resolve: rounds.resolve,
      clock: rushing(),
    })
    await agent.start()
    await rounds.seen(5)
    expect(servers.asked).toHaveLength(1)
  })

  test('--sync-forever goes on looking for new servers', async () => {
    const servers = new FakeServers((_, count) => ({
      serverIds: [count < 5 ? 'a' : 'b'],
      serverCounts: ['1'],
    }))
    const agent = await start(servers, '--sync-forever')
    await servers.tried(6)
    expect(agent.servers).toEqual(['a', 'b'])
  })
})

test('[TUN-U8] a lost link is opened again', async () => {
  const servers = new FakeServers(() => ({}))
  const agent = await start(servers)
  await agent.connected(limit())
  servers.links[0]?.close(new Error('cut'))
  await servers.tried(2)
  await lines.seen('connected to a tunnel server', 2)
  expect(agent.servers).toEqual(['server-1'])
})

test('[TUN-W15] failures are repeated with growing pauses up to the cap', async () => {
  const times: number[] = []
  const servers = new FakeServers(() => {
    times.push(performance.now())
    return new Error('no way')
  })
  await start(servers, '--sync-interval=20ms', '--sync-interval-cap=60ms')
  await servers.tried(6)
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  // 20, 30, 45, 60, 60 ms, each up to a tenth longer, and later when the machine is busy.
  expect(gaps.map((gap, index) => gap >= ([20, 30, 45, 60, 60][index] ?? 0) - 1)).toEqual(
    gaps.map(() => true),
  )
})

describe('[TUN-W4, TUN-W6] a server must say who it is', () => {
  test.each([
    ['no id', []],
    ['an empty id', ['']],
    ['two ids', ['a', 'b']],
    ['[SEC-R703] an id of 257 characters', ['a'.repeat(257)]],
    ['[SEC-R703] an id with a line break', ['a\nb']],
  ])('%s', async (_name, serverIds) => {
    const servers = new FakeServers((_, count) => (count === 1 ? { serverIds } : {}))
    const agent = await start(servers)
    await agent.connected(limit())
    expect(servers.links[0]?.isClosed).toBe(true)
    expect(agent.servers).toEqual(['server-1'])
  })

  test.each([
    ['none', []],
    ['two', ['1', '2']],
    ['a word', ['many']],
  ])('a count that is missing or odd (%s) is taken for one', async (_name, serverCounts) => {
    const servers = new FakeServers(() => ({ serverCounts }))
    const agent = await start(servers)
    await agent.connected(limit())
    const page = await fetch(`http://127.0.0.1:${agent.ports.health}/metrics`)
    expect(await page.text()).toContain('agent_known_server_count 1\n')
  })
})

test('the agent says who it is, and asks silent servers within a minute', async () => {
  const token = await lab.write('token', 'secret-token\n')
  const servers = new FakeServers(() => ({}))
  const agent = await start(
    servers,
    '--agent-id=me',
    '--agent-identifiers=host=n1&ipv4=10.0.0.1',
    `--service-account-token-path=${token}`,
    '--alpn-proto=konnectivity',
    '--keepalive-time=1h',
  )
  await agent.connected(limit())
  expect(servers.asked[0]).toMatchObject({
    host: '127.0.0.1',
    port: 8091,
    metadata: {
      agentid: 'me',
      agentidentifiers: 'host=n1&ipv4=10.0.0.1',
      authorization: 'Bearer secret-token',
    },
    tls: { ca: labCa, alpn: ['konnectivity'] },
    capabilities: ['rdial', 'credit', 'halfclose'],
    keepalive: { timeMs: 35_000, timeoutMs: 20_000 },
  })
  expect(servers.asked[0]?.tls).not.toHaveProperty('servername')
  expect(JSON.stringify(lines.lines)).not.toContain('secret-token')
})

test.each([
  ['0', 35_000],
  ['10s', 10_000],
  ['1h', 35_000],
])(
  '[TUN-W14] with --keepalive-time %s a silent server is asked after %d ms',
  async (time, timeMs) => {
    const servers = new FakeServers(() => ({}))
    const agent = await start(servers, `--keepalive-time=${time}`)
    await agent.connected(limit())
    expect(servers.asked[0]?.keepalive?.timeMs).toBe(timeMs)
  },
)

test('[TUN-R17, TUN-F14] the name of the server is asked for and proven, an address never', async () => {
  const servers = new FakeServers(() => ({}))
  const agent = await lab.agent(['--proxy-server-host=tunnel.example.com'], {
    connect: servers.connect,
    resolve: () => Promise.resolve(['192.0.2.1']),
  })
  await agent.start()
  await agent.connected(limit())
  expect(servers.asked[0]).toMatchObject({
    host: '192.0.2.1',
    tls: { servername: 'tunnel.example.com' },
  })
})

test('[TUN-R16, TUN-F13] certificates, CA and token are read anew for every link', async () => {
  const [cert, key, token] = await Promise.all([
    lab.write('tls.crt', 'cert 1'),
    lab.write('tls.key', 'key 1'),
    lab.write('token', 'token-1'),
  ])
  const servers = new FakeServers(() => ({}))
  const agent = await start(
    servers,
    `--agent-cert=${cert}`,
    `--agent-key=${key}`,
    `--service-account-token-path=${token}`,
  )
  await agent.connected(limit())
  await Promise.all([
    lab.write('tls.crt', 'cert 2'),
    lab.write('tls.key', 'key 2'),
    lab.write('token', 'token-2'),
    lab.write('ca.crt', `${labCa} 2`),
  ])
  servers.links[0]?.close()
  await servers.tried(2)
  const shown = servers.asked.map(({ tls, metadata }) => [tls, metadata['authorization']])
  expect(shown).toMatchObject([
    [{ cert: 'cert 1', key: 'key 1', ca: labCa }, 'Bearer token-1'],
    [{ cert: 'cert 2', key: 'key 2', ca: `${labCa} 2` }, 'Bearer token-2'],
  ])
})

test('a credential that cannot be read is told by its flag, and tried again', async () => {
  const token = await lab.write('token', ' \n')
  const servers = new FakeServers(() => ({}))
  const agent = await start(servers, `--service-account-token-path=${token}`)
  await lines.seen('cannot connect to a tunnel server')
  expect(lines.lines.map(({ fields }) => Object.values(fields).join())).toContainEqual(
    expect.stringContaining('named by --service-account-token-path, holds no token'),
  )
  await lab.write('token', 'good')
  await agent.connected(limit())
})

test('[TUN-F4] a CA file without a certificate is named, before a good server is called false', async () => {
  await lab.write('ca.crt', 'not what it should be')
  const servers = new FakeServers(() => ({}))
  const agent = await start(servers)
  await lines.seen('cannot connect to a tunnel server')
  expect(lines.lines.map(({ fields }) => Object.values(fields).join())).toContainEqual(
    expect.stringContaining('ca.crt, named by --ca-cert, holds no certificate in PEM form'),
  )
  expect(servers.asked).toEqual([])
  await lab.write('ca.crt', labCa)
  await agent.connected(limit())
})

describe('[TUN-W18] several addresses', () => {
  test('each is linked, whatever a server says of their number', async () => {
    const servers = new FakeServers(({ host, port }) => ({ serverIds: [`${host}:${port}`] }))
    const agent = await start(
      servers,
      '--proxy-server-host=127.0.0.1:7001',
      '--proxy-server-host=127.0.0.2,[::1]:7002',
    )
    await lines.seen('connected to a tunnel server', 3)
    expect([...agent.servers].sort()).toEqual(['127.0.0.1:7001', '127.0.0.2:8091', '::1:7002'])
  })

  test('all addresses of a name are linked, and two of one server only once', async () => {
    const servers = new FakeServers(({ host }) => ({ serverIds: [host === '::1' ? 'b' : 'a'] }))
    const rounds = new Rounds(['127.0.0.1', '127.0.0.2', '::1'])
    const agent = await lab.agent(['--proxy-server-host=tunnel.test'], {
      connect: servers.connect,
      resolve: rounds.resolve,
      clock: rushing(),
    })
    await agent.start()
    await rounds.seen(8)
    expect(agent.servers).toEqual(['a', 'b'])
    expect(servers.asked).toHaveLength(3)
  })

  test('one that is down does not keep the agent from the others', async () => {
    const servers = new FakeServers(({ host }) =>
      host === '127.0.0.1' ? new Error('down') : { serverIds: [host] },
    )
    const agent = await start(servers, '--proxy-server-host=127.0.0.1,127.0.0.2')
    await agent.connected(limit())
    expect(agent.servers).toEqual(['127.0.0.2'])
  })

  test('a name that cannot be resolved is tried again', async () => {
    let asked = 0
    const servers = new FakeServers(() => ({}))
    const agent = await lab.agent(['--proxy-server-host=tunnel.test'], {
      connect: servers.connect,
      resolve: () => {
        asked++
        return asked < 3 ? Promise.reject(new Error('not yet')) : Promise.resolve(['127.0.0.1'])
      },
    })
    await agent.start()
    await agent.connected(limit())
    expect(asked).toBe(3)
  })
})

describe('[TUN-W13, TUN-P10] at the end', () => {
  test('[TUN-U12] every server hears of the drain, and an idle agent ends', async () => {
    const servers = new FakeServers((_, count) => ({
      serverIds: [`s${count}`],
      serverCounts: ['2'],
    }))
    const agent = await start(servers)
    await lines.seen('connected to a tunnel server', 2)
    await agent.stop(AbortSignal.timeout(20_000))
    expect(servers.links.map((link) => [link.drainsSent, link.isClosed])).toEqual([
      [1, true],
      [1, true],
    ])
  })

  test('[TUN-U9] connections go on, new ones are served, and no new link is opened', async () => {
    const servers = new FakeServers(() => ({}))
    const agent = await start(servers)
    await agent.connected(limit())
    const [link] = servers.links
    const port = await lab.echo()
    const open = await link!.ask(`127.0.0.1:${port}`)
    const stopped = agent.stop(AbortSignal.timeout(20_000))
    expect(link!.isClosed).toBe(false)
    const late = await link!.ask(`127.0.0.1:${port}`)
    for (const answer of [open, late]) {
      expect(answer).toHaveProperty('accepted')
      if ('accepted' in answer) answer.accepted.close()
    }
    await stopped
    expect({ tried: servers.asked.length, active: agent.activeConnections }).toEqual({
      tried: 1,
      active: 0,
    })
  })

  test('the deadline cuts what is still open', async () => {
    const servers = new FakeServers(() => ({}))
    const agent = await start(servers)
    await agent.connected(limit())
    const deadline = new AbortController()
    const stopped = agent.stop(deadline.signal)
    await servers.links[0]!.ask(`127.0.0.1:${await lab.echo()}`)
    deadline.abort()
    await stopped
    expect(servers.links[0]?.isClosed).toBe(true)
  })

  test('an agent that never reached a server ends at once', async () => {
    const servers = new FakeServers(() => new Error('no way'))
    const agent = await start(servers)
    await servers.tried(1)
    const deadline = AbortSignal.timeout(20_000)
    await agent.stop(deadline)
    expect(deadline.aborted).toBe(false)
  })
})
