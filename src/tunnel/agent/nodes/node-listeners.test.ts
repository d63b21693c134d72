import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../../../core/index.ts'
import { DialFailed } from '../../link/index.ts'
import { AgentLab, ChannelReader, closedPort, LogLines } from '../agent-lab.suite.ts'
import { type AskedDial, FakeLink, type FakeLinkOptions } from '../fake-link.suite.ts'
import type { TunnelAgent } from '../tunnel-agent.ts'
import { interfaceCommands, provideAddress } from './dummy-interface.ts'

// Loopback, because a test machine has few other addresses; the agent merely warns of it.
const address = '127.0.0.2'
const gate = '--feature-gates=NodeToMasterTraffic=true'

let lab: AgentLab
let lines: LogLines
let clients: Socket[]

beforeEach(async () => {
  lab = await AgentLab.open()
  lines = new LogLines()
  clients = []
})

afterEach(async () => {
  for (const client of clients) client.destroy()
  await lab.close()
})

interface Running {
  readonly agent: TunnelAgent
  readonly links: FakeLink[]
}

/** An agent with one link per given server. */
async function start(
  argv: readonly string[],
  servers: readonly FakeLinkOptions[],
): Promise<Running> {
  const links = servers.map(
    (options, index) =>
      new FakeLink({
        serverIds: [`s${index}`],
        serverCounts: [String(servers.length)],
        ...options,
      }),
  )
  let next = 0
  const connectLink = () => {
    const link = links[next++]
    return link ? Promise.resolve(link) : Promise.reject(new Error('no more servers'))
  }
  const agent = await lab.agent([gate, ...argv], { connect: connectLink, log: lines.log })
  await agent.start()
  if (servers.length > 0) await lines.seen('connected to a tunnel server', servers.length)
  return { agent, links }
}

async function opened(agent: TunnelAgent, count = 1): Promise<number[]> {
  await lines.seen('local port opened', count)
  return agent.nodePorts.map(({ port }) => port)
}

async function client(port: number, host = address): Promise<Socket> {
  const socket = connect({ port, host, allowHalfOpen: true })
  clients.push(socket)
  await once(socket, 'connect')
  return socket
}

const asked = (link: FakeLink): Promise<AskedDial> =>
  new Promise((resolve) => {
    link.onDial = resolve
  })

const ready = async (agent: TunnelAgent): Promise<string> =>
  (await fetch(`http://127.0.0.1:${agent.ports.health}/readyz?verbose`)).text()

describe('[TUN-R4] only a target and an address together open a port', () => {
  test.each([
    ['neither', [], 0],
    ['only a target', ['--target=api:6443:0'], 0],
    ['only an address', [`--bind-address=${address}`], 0],
    ['both', ['--target=api:6443:0', `--bind-address=${address}`], 1],
  ])('%s', async (_name, argv, count) => {
    const { agent } = await start(argv, [{}])
    if (count > 0) await lines.seen('local port opened')
    expect(agent.nodePorts).toHaveLength(count)
  })
})

test('[TUN-R1] every target has a port of its own', async () => {
  const targets = ['api:6443:0', '0:[2001:db8::1]:443', '10.0.0.1:80:0']
  const { agent } = await start(
    [...targets.map((target) => `--target=${target}`), `--bind-address=${address}`],
    [],
  )
  const ports = await opened(agent, 3)
  expect(new Set(ports).size).toBe(3)
  expect(agent.nodePorts.map((open) => open.address)).toEqual([
    'api:6443',
    '[2001:db8::1]:443',
    '10.0.0.1:80',
  ])
})

test('[TUN-R3] the port is open on the bind address and on no other', async () => {
  const { agent } = await start(['--target=api:6443:0', `--bind-address=${address}`], [])
  const [port = 0] = await opened(agent)
  await expect(client(port, '127.0.0.1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await client(port)
})

describe('a local connection', () => {
  const argv = ['--target=api:6443:0', `--bind-address=${address}`]

  test('[TUN-R5] is dialled through a link and carries bytes both ways', async () => {
    const { agent, links } = await start(argv, [{}])
    const [port = 0] = await opened(agent)
    const dial = asked(links[0]!)
    const socket = await client(port)
    socket.write('early ')
    const order = await dial
    const { address: target, deadlineMs } = order
    const reader = new ChannelReader(order.accept())
    expect({ target, inTime: deadlineMs <= 30_000 && deadlineMs > 29_000 }).toEqual({
      target: 'api:6443',
      inTime: true,
    })
    socket.end('bytes')
    await reader.until('early bytes')
    await reader.finished
  })

  test('[TUN-R22] is closed at once when no server is connected', async () => {
    const { agent } = await start(argv, [])
    const [port = 0] = await opened(agent)
    const socket = await client(port)
    await once(socket.resume(), 'end')
    expect(await ready(agent)).toContain('[-]node-to-control-plane failed: no servers connected\n')
  })

  test('[TUN-F18] that cannot be carried is told once, however many clients try again', async () => {
    const { agent } = await start(argv, [])
    const [port = 0] = await opened(agent)
    for (const _ of [1, 2, 3]) {
      const socket = await client(port)
      await once(socket.resume(), 'end')
    }
    const told = lines.lines.filter(({ message }) => message.includes('cannot be carried'))
    expect(told).toEqual([expect.objectContaining({ fields: { why: 'no servers connected' } })])
  })

  test('[TUN-R24, TUN-W5] is closed at once when the server knows nothing of this direction', async () => {
    const { agent, links } = await start(argv, [{ capabilities: [] }])
    const [port = 0] = await opened(agent)
    let dials = 0
    links[0]!.onDial = () => dials++
    const socket = await client(port)
    await once(socket.resume(), 'end')
    expect(dials).toBe(0)
    expect(await ready(agent)).toContain(
      '[-]node-to-control-plane failed: no connected server takes connections from nodes',
    )
  })

  test.each(['refused-by-peer', 'timeout'] as const)(
    '[TUN-R22] is closed when its dial fails: %s',
    async (reason) => {
      const { agent, links } = await start(argv, [{}, {}])
      const [port = 0] = await opened(agent)
      let dials = 0
      for (const link of links) {
        link.onDial = (dial) => {
          dials++
          dial.fail(new DialFailed(reason, dial.address, 'not allowed'))
        }
      }
      const socket = await client(port)
      await once(socket.resume(), 'end')
      expect(dials).toBe(1) // another server would say the same
    },
  )

  test('[TUN-R23, TUN-P4] is dialled by another server when the first is lost before its answer', async () => {
    const { agent, links } = await start(argv, [{}, {}])
    const [port = 0] = await opened(agent)
    const first = Promise.race(links.map(async (link) => ({ link, dial: await asked(link) })))
    await client(port)
    const { link: lost } = await first
    const other = links.find((link) => link !== lost)!
    const second = asked(other)
    lost.close(new Error('cut'))
    expect((await second).address).toBe('api:6443')
  })

  test('[TUN-R23] goes to every server in the long run', async () => {
    const { agent, links } = await start(argv, [{}, {}, {}])
    const [port = 0] = await opened(agent)
    const used = new Set<number>()
    const all = new Promise<void>((resolve) => {
      for (const [index, link] of links.entries()) {
        link.onDial = (dial) => {
          used.add(index)
          dial.fail(new DialFailed('refused-by-peer', dial.address))
          if (used.size === links.length) resolve()
        }
      }
    })
    for (let attempt = 0; attempt < 60; attempt++) (await client(port)).resume()
    await all
    expect(used.size).toBe(3)
  })

  test('prefers servers that stay over those that are draining', async () => {
    const { agent, links } = await start(argv, [{}, {}])
    const [port = 0] = await opened(agent)
    links[0]!.receiveDrain()
    let drainingAsked = 0
    links[0]!.onDial = () => drainingAsked++
    for (let attempt = 0; attempt < 8; attempt++) {
      const dial = asked(links[1]!)
      await client(port)
      ;(await dial).accept().close()
    }
    expect(drainingAsked).toBe(0)
    links[1]!.receiveDrain()
    const dials = links.map(asked)
    await client(port)
    ;(await Promise.race(dials)).accept().close()
  })

  test('that its client gives up is not dialled any longer', async () => {
    const { agent, links } = await start(argv, [{}])
    const [port = 0] = await opened(agent)
    const dial = asked(links[0]!)
    const socket = await client(port)
    const { signal } = await dial
    socket.resetAndDestroy()
    await once(signal, 'abort')
    await expect.poll(() => agent.activeConnections).toBe(0)
  })

  test('is given up when the agent stops before there is an answer', async () => {
    const { agent, links } = await start(argv, [{}])
    const [port = 0] = await opened(agent)
    const dial = asked(links[0]!)
    const closed = once((await client(port)).resume(), 'end')
    const { signal } = await dial
    await agent.stop(AbortSignal.abort())
    await closed
    expect(signal.aborted).toBe(true)
  })

  test('ends when its link is lost, and leaves nothing behind', async () => {
    const { agent, links } = await start(argv, [{}])
    const [port = 0] = await opened(agent)
    const dial = asked(links[0]!)
    const socket = await client(port)
    const closed = once(socket.resume(), 'close').catch(() => 'reset')
    new ChannelReader((await dial).accept())
    links[0]!.close(new Error('cut'))
    await closed
    await expect.poll(() => agent.activeConnections).toBe(0)
  })
})

describe('[TUN-R14] a port that cannot be opened yet', () => {
  test('is tried again until it can, and the agent is not ready meanwhile', async () => {
    const port = await closedPort()
    const blocker = createServer().listen(port, address)
    await once(blocker, 'listening')
    const { agent } = await start([`--target=api:6443:${port}`, `--bind-address=${address}`], [{}])
    await lines.seen('the port is in use')
    expect(await ready(agent)).toBe(
      '[+]ping ok\n[+]server-connected ok\n' +
        `[-]node-listeners failed: cannot listen on ${address} port ${port}: the port is in use\n` +
        '[+]node-to-control-plane ok\n',
    )
    blocker.close()
    expect(await opened(agent)).toEqual([port])
    expect(await ready(agent)).toContain('[+]node-listeners ok\n')
  })

  test('waits for an address that no interface has', async () => {
    const { agent } = await start(['--target=api:6443:0', '--bind-address=192.0.2.77'], [{}])
    await lines.seen('cannot listen on 192.0.2.77 port 0: no interface has this address yet')
    expect((await fetch(`http://127.0.0.1:${agent.ports.health}/readyz`)).status).toBe(503)
  })
})

describe('[TUN-R14] --create-interface', () => {
  const run = (log: string[][]) => (program: string, args: readonly string[]) => {
    log.push([program, ...args])
    return args[1] === 'add' ? Promise.reject(new Error('File exists')) : Promise.resolve()
  }

  test('puts the address on a dummy interface, which may be there already', async () => {
    const calls: string[][] = []
    await provideAddress('10.64.0.1', { isRoot: true, run: run(calls), log: silentLogger })
    expect(calls.map((call) => call.join(' '))).toEqual([
      'ip link add sallyport0 type dummy',
      'ip address replace 10.64.0.1/32 dev sallyport0 scope host',
      'ip link set sallyport0 up',
    ])
  })

  test('falls back on loopback where the kernel has no dummy interfaces', async () => {
    const calls: string[][] = []
    const onlyLoopback = (program: string, args: readonly string[]) => {
      calls.push([program, ...args])
      return args.includes('sallyport0')
        ? Promise.reject(new Error('no device'))
        : Promise.resolve()
    }
    await provideAddress('10.64.0.1', { isRoot: true, run: onlyLoopback, log: silentLogger })
    expect(calls.slice(-2).map((call) => call.join(' '))).toEqual([
      'ip address replace 10.64.0.1/32 dev lo scope host',
      'ip link set lo up',
    ])
  })

  test('does nothing for an address that the machine has', async () => {
    const calls: string[][] = []
    await provideAddress('127.0.0.1', { isRoot: true, run: run(calls), log: silentLogger })
    expect(calls).toEqual([])
  })

  test('only waits when it may not make one', async () => {
    const calls: string[][] = []
    await provideAddress('10.64.0.1', { isRoot: false, run: run(calls), log: lines.log })
    expect(calls).toEqual([])
    expect(lines.lines[0]?.message).toContain('waiting for somebody else to bring the address')
  })

  test.for(['10.64.0.1', 'fd00:64::1'])('ip takes the calls for %s', async (wanted, { skip }) => {
    const inNetwork = (script: string): Promise<{ stdout: string }> =>
      promisify(execFile)('unshare', ['--net', 'sh', '-ec', script])
    const canTry = await inNetwork('ip link show lo').catch(() => undefined)
    if (!canTry) skip('this user can make no network namespace')
    const calls = interfaceCommands(wanted, 'lo').map((args) => `ip ${args.join(' ')}`)
    const { stdout } = await inNetwork([...calls, ...calls, 'ip -o address show lo'].join('\n'))
    expect(stdout).toContain(wanted.includes(':') ? `${wanted}/128` : `${wanted}/32 scope host`)
  })

  test('IPv6 addresses do not wait for the search for duplicates', () => {
    expect(interfaceCommands('fd00::1', 'lo')[0]).toContain('nodad')
  })
})

test('[TUN-R13] a loopback address is warned of', async () => {
  await start(['--target=api:6443:0', `--bind-address=${address}`], [])
  expect(lines.lines.map(({ message }) => message)).toContainEqual(
    expect.stringContaining('is a loopback address'),
  )
})

test('[TUN-R15] ports are open before any server or cluster can be reached', async () => {
  const { agent } = await start(
    ['--target=api:6443:0', `--bind-address=${address}`, '--count-server-leases'],
    [],
  )
  expect(await opened(agent)).toHaveLength(1)
  await lines.seen('cannot read the Leases')
})
