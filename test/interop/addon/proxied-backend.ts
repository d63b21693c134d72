import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { deflateRawSync, gzipSync } from 'node:zlib'

/** A page with every kind of link. */
const page = (host: string): string =>
  [
    '<!DOCTYPE html><html><head><title>a</title><base href="/base/">',
    '<link rel="stylesheet" href="/s.css"><script src="/j.js"></script></head><body background="/b.png">',
    '<a href="/x?y=1#z">a</a><a href="x">b</a><a href="//else.example/x">c</a>',
    `<a href="http://${host}/own">d</a><a href="http://else.example/">e</a><a href="#f">f</a>`,
    '<img src="/i.png"><form action="/f" method="post"><input type="image" src="/i"></form>',
    '<iframe src="/frame"></iframe><object data="/o"></object><video src="/v" poster="/p"></video>',
    '</body></html>',
  ].join('\n')

type Reply = readonly [
  status: number,
  headers: Record<string, string | string[]>,
  body?: string | Buffer,
]

const replies: Readonly<Record<string, (host: string) => Reply>> = {
  '/html': (host) => [200, { 'content-type': 'text/html' }, page(host)],
  '/gzip': (host) => [
    200,
    { 'content-type': 'text/html', 'content-encoding': 'gzip' },
    gzipSync(page(host)),
  ],
  '/deflate': (host) => [
    200,
    { 'content-type': 'text/html', 'content-encoding': 'deflate' },
    deflateRawSync(page(host)),
  ],
  '/css': () => [200, { 'content-type': 'text/css' }, 'a{background:url(/x)}'],
  '/redirect': () => [302, { location: '/to?x=1' }],
  '/redirect-relative': () => [302, { location: 'to' }],
  '/redirect-own': (host) => [302, { location: `http://${host}/to/` }],
  '/redirect-away': () => [302, { location: 'http://else.example/to' }],
  '/cookie': () => [200, { 'set-cookie': ['a=1; Path=/', 'b=2'] }],
  '/cors': () => [
    200,
    {
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET',
      'access-control-allow-headers': 'x',
      'access-control-allow-credentials': 'true',
      'access-control-max-age': '1',
    },
  ],
  '/cache': () => [200, { 'cache-control': 'max-age=60' }],
  '/unauthorized': () => [401, { 'www-authenticate': 'Basic realm="x"' }, 'no'],
  '/empty': () => [204, {}],
  '/error': () => [500, { 'content-type': 'text/plain' }, 'broken'],
  '/long': () => [200, {}, 'x'.repeat(200_000)],
}

const shownHeaders = [
  'authorization',
  'cookie',
  'content-length',
  'transfer-encoding',
  'impersonate-user',
  'x-remote-user',
  'x-authenticated-user',
  'x-forwarded-uri',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-custom',
  'te',
  'upgrade',
]

async function echo(request: IncomingMessage): Promise<string> {
  const headers = shownHeaders.flatMap((name) => {
    const value = request.headers[name]
    return value === undefined ? [] : [[name, value]]
  })
  return JSON.stringify({
    method: request.method,
    url: request.url,
    headers: Object.fromEntries(headers),
    body: await text(request),
  })
}

/** An application that answers every proxy alike. */
export async function startBackend(address: string): Promise<{ port: number; server: Server }> {
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo
    const reply = replies[(request.url ?? '').split('?', 1)[0] ?? '']
    if (reply) {
      const [status, headers, body = ''] = reply(`${address}:${port}`)
      request.resume()
      response.writeHead(status, headers).end(body)
      return
    }
    void echo(request).then((seen) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(seen),
    )
  })
  server.listen(0, address)
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, server }
}
