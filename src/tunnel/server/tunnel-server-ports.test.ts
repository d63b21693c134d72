import { once, setMaxListeners } from 'node:events'
import { stat, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'
import { echoOverGrpc, nextText } from './tunnel-talk.suite.ts'

const signal = new AbortController().signal
setMaxListeners(0, signal)
const established = 'HTTP/1.1 200 Connection Established\r\n\r\n'
const idle = { agents: 0, pendingDials: 0, connections: 0, frontEndClients: 0 }
let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(async () => {
  await lab.close()
})

test('[TUN-F8] the admin port has metrics too, and profiles only when they are switched on', async () => {
  await lab.start({ config: { admin: { host: '127.0.0.1', port: 0, isProfiling: false } } })
  const at = (path: string) => fetch(`http://127.0.0.1:${lab.server.ports.admin}${path}`)
  expect(await (await at('/metrics')).text()).toContain('server_ready_backend_connections 0\n')
  expect((await at('/debug/pprof/')).status).toBe(404)
})

describe('the end', () => {
  test('[TUN-F15, TUN-P10] open connections may go on until the deadline', async () => {
    await lab.start({ mode: 'http-connect', config: { drainMs: 60_000 } })
    await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    const stopping = lab.server.stop(new AbortController().signal)
    await lab.until(() => lab.server.ports.frontEnd === 0)
    const ready = await fetch(`http://127.0.0.1:${lab.server.ports.health}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([500, 'the server is shutting down'])
    client.write('still here')
    expect(await nextText(client)).toBe('still here')
    client.end()
    await stopping
    await expect(stat(lab.socketPath)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('[TUN-F15] the deadline cuts what is left', async () => {
    await lab.start({ mode: 'http-connect', config: { drainMs: 30 } })
    await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    const closed = new Promise((resolve) => client.once('close', resolve))
    client.resume()
    await lab.server.stop(new AbortController().signal)
    client.end()
    await closed
  })

  test.each(['grpc', 'http-connect'] as const)(
    '[TUN-U1] leaves no socket, server or watcher behind (%s)',
    async (mode) => {
      const held = (): string[] =>
        process
          .getActiveResourcesInfo()
          .filter((name) => /Wrap|Event/.test(name))
          .toSorted((a, b) => a.localeCompare(b))
      const before = held()
      const other = await openTunnelLab()
      await other.start({ mode })
      const agent = await other.agent()
      const target = await other.target()
      if (mode === 'grpc') await echoOverGrpc(await other.frontEndLink(), target, 'x')
      else {
        const client = await other.connectClient(target)
        await nextText(client)
        client.end()
      }
      expect(held().length).toBeGreaterThan(before.length)
      await other.until(() => agent.channelCount === 0 && other.server.load.connections === 0)
      await other.close()
      await lab.until(() => held().length <= before.length)
      expect(held()).toEqual(before)
    },
  )

  test('a second stop is fine', async () => {
    await lab.start()
    await lab.server.stop(signal)
    await lab.server.stop(signal)
    expect(lab.server.load).toEqual(idle)
  })
})

describe('what cannot be opened is explained', () => {
  test('a port in use', async () => {
    await lab.start()
    const other = await openTunnelLab()
    const health = { host: '127.0.0.1', port: lab.server.ports.agents }
    await expect(other.start({ config: { health } })).rejects.toThrow('the port is in use')
    await other.close()
  })

  test('a file in the place of the socket is not removed', async () => {
    await writeFile(lab.socketPath, 'precious')
    await expect(lab.start()).rejects.toMatchObject({ code: 'SOCKET_PATH_TAKEN' })
    expect((await stat(lab.socketPath)).isFile()).toBe(true)
  })

  test('[TUN-W21] a socket that was left behind is', async () => {
    await lab.start()
    const { path, replace } = { path: lab.socketPath, replace: true }
    await lab.server.stop(signal)
    const stale = createServer().listen(path)
    await once(stale, 'listening')
    lab.closeLater(() => stale.close())
    await lab.start({
      config: { frontEnd: { mode: 'grpc', place: { path, replace }, keepaliveMs: 0 } },
    })
    expect((await stat(path)).isSocket()).toBe(true)
  })

  test('a certificate that is missing', async () => {
    const missing = { certFile: lab.path('none.crt'), keyFile: lab.path('server.key') }
    const agents = {
      host: '127.0.0.1',
      port: 0,
      tls: { ...missing, clientCaFile: lab.path('ca.crt') },
      keepaliveMs: 0,
    }
    await expect(lab.start({ config: { agents } })).rejects.toThrow('none.crt')
  })
})

test('a client that speaks something else to the agent port is cut', async () => {
  await lab.start()
  const client = connect(lab.server.ports.agents, '127.0.0.1')
  client.on('error', () => {})
  const closed = new Promise((resolve) => client.once('close', resolve))
  client.write('GET / HTTP/1.1\r\n\r\n')
  client.resume()
  await closed
  expect(lab.server.load).toEqual(idle)
})
