import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { duplexOf } from '../link/index.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'

let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(() => lab.close())

const chunk = Buffer.alloc(64 * 1024)

/** Sends for as long as it is there. */
function pour(socket: Pick<Socket, 'write' | 'once' | 'destroyed'>): void {
  while (!socket.destroyed) {
    if (socket.write(chunk)) continue
    socket.once('drain', () => pour(socket))
    return
  }
}

const fullChannels = async (): Promise<Record<string, number>> => {
  const lines = (await lab.metrics()).matchAll(
    /full_receive_channels\{service_method="(\w+)"\} (\d+)\n/g,
  )
  return Object.fromEntries([...lines].map(([, method = '', count]) => [method, Number(count)]))
}

test.each(['grpc', 'http-connect'] as const)(
  '[TUN-F9] a client that does not read what an agent sends is a full channel of Connect (%s)',
  async (mode) => {
    await lab.start({ mode })
    await lab.agent()
    const address = await lab.target(pour)
    expect(await fullChannels()).toEqual({ Connect: 0, Proxy: 0 })
    const client = await stoppedClient(mode, address)
    await expect.poll(fullChannels, { timeout: 10_000 }).toEqual({ Connect: 1, Proxy: 0 })
    client.resume()
    client.destroy()
  },
)

async function stoppedClient(mode: 'grpc' | 'http-connect', address: string) {
  if (mode === 'http-connect') {
    const socket = await lab.connectClient(address)
    return socket.pause()
  }
  const link = await lab.frontEndLink()
  const signal = new AbortController().signal
  return duplexOf(await link.dial(address, { signal, deadlineMs: 5_000 }))
}

test('[TUN-F9] a target that does not read what a client sends is a full channel of Proxy', async () => {
  await lab.start({ mode: 'http-connect' })
  await lab.agent()
  const accepted: Socket[] = []
  const client = await lab.connectClient(await lab.target((socket) => accepted.push(socket)))
  client.resume()
  pour(client)
  await expect.poll(fullChannels, { timeout: 10_000 }).toEqual({ Connect: 0, Proxy: 1 })
  client.destroy()
  for (const socket of accepted) socket.resume()
  await expect.poll(fullChannels, { timeout: 10_000 }).toEqual({ Connect: 0, Proxy: 0 })
})
