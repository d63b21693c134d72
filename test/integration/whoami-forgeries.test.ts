import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'

interface Forgeries {
  readonly forge: (
    name: string,
    at: { readonly token: string; readonly host: string; readonly port: number },
  ) => Promise<object>
}

const { forge } = (await import(
  new URL('../../examples/whoami-addon/forgeries.js', import.meta.url).href
)) as Forgeries

const hosts: (string | undefined)[] = []
const servers: Server[] = []
const listen = async (host: string): Promise<number> => {
  const server = createServer((request, response) => {
    hosts.push(request.headers.host)
    response.writeHead(403).end('{"reason":"no-token"}')
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return (server.address() as AddressInfo).port
}

afterAll(() => {
  for (const server of servers) server.close()
})

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
])('a forgery is sent to %s under a host that can be read [ADDON-E1]', async (host, written) => {
  const port = await listen(host)
  const answer = await forge('bare-header', { token: 'a.b.c', host, port })
  expect([answer, hosts.at(-1)]).toEqual([
    { status: 403, reason: 'no-token' },
    `${written}:${port}`,
  ])
})
