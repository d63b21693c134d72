import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../../src/core/index.ts'
import { Http2Connection } from '../../../src/grpc/http2/index.ts'
import { createGrpcServer } from '../../../src/grpc/index.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'

const h2spec = pathOrReason(findPeer('h2spec-2.2'))
const greeter = pathOrReason(findPeer('grpc-greeter-1.81'))

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Report {
  readonly cases: readonly string[]
  readonly failed: readonly string[]
}

const decode = (text: string): string =>
  text
    .replaceAll('&#34;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

/** Runs all cases of h2spec against a cleartext server on this machine. */
async function run(program: string, port: number): Promise<Report> {
  const directory = await mkdtemp(join(tmpdir(), 'h2spec-'))
  closers.push(() => rm(directory, { recursive: true }))
  const file = join(directory, 'report.xml')
  const args = ['--host', '127.0.0.1', '--port', String(port), '--timeout', '2', '--strict']
  // It exits with 1 if a case fails.
  await promisify(execFile)(program, [...args, '--junit-report', file]).catch(() => {})
  const cases: string[] = []
  const failed: string[] = []
  const report = await readFile(file, 'utf8')
  for (const [, head = '', body = ''] of report.matchAll(
    /<testcase ([^>]*[^/])(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const [, section = ''] = /package="([^"]*)"/.exec(head) ?? []
    const [, name = ''] = /classname="([^"]*)"/.exec(head) ?? []
    const id = `${section}: ${decode(name)}`
    cases.push(id)
    if (/<(?:failure|error)/.test(body)) failed.push(id)
  }
  return { cases, failed }
}

const listening = async (server: ReturnType<typeof createServer>): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  return (server.address() as AddressInfo).port
}

/** An HTTP server on our HTTP/2 layer: it reads the request, then responds with a short body. */
const serveHttp = (): Promise<number> =>
  listening(
    createServer((socket) => {
      const connection = new Http2Connection(
        socket,
        { side: 'server', maxStreams: 100, clock: systemClock },
        {
          request: (stream) =>
            stream.start({
              data: () => {},
              progress: () => {},
              finished: () => {
                stream.sendHeaders([[':status', '200']])
                stream.write([Buffer.from('a response body')])
                stream.end()
              },
              closed: () => {},
            }),
          idle: () => {},
          closed: () => {},
        },
      )
      closers.push(() => connection.destroy())
    }),
  )

/** Our gRPC server, which refuses the requests of h2spec: they are not gRPC. */
async function serveGrpc(): Promise<number> {
  const server = createGrpcServer({ methods: {}, log: silentLogger })
  closers.push(() => server.close())
  return listening(server.cleartextServer())
}

/** grpc-go's example server. */
async function serveGrpcGo(program: string): Promise<number> {
  const child = new LoggedProcess(program, ['--port', '0'])
  closers.push(() => child.stop())
  const line = await child.said(/server listening at/)
  return Number(/:(\d+)$/.exec(line.trim())?.[1])
}

const withoutBody = 'expects DATA in the response, and a request that is not gRPC gets none'
const refused = 'the request is not gRPC: the stream was refused and reset before'

/** Cases that fail, and why. Our HTTP/2 layer passes all; our gRPC server refuses requests that are not gRPC. */
const explained: Readonly<Record<string, string>> = {
  'generic/2: Sends a WINDOW_UPDATE frame on half-closed (remote) stream': withoutBody,
  'generic/2: Sends a PRIORITY frame on half-closed (remote) stream': withoutBody,
  'http2/6.9.1: Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream':
    refused,
  'http2/8.1.2.6: Sends a HEADERS frame with the "content-length" header field which does not equal the DATA frame payload length':
    refused,
  'http2/8.1.2.6: Sends a HEADERS frame with the "content-length" header field which does not equal the sum of the multiple DATA frames payload length':
    refused,
}

describe.skipIf(!h2spec)('h2spec', { timeout: 300_000 }, () => {
  test.skipIf(!greeter)(
    '[SEC-R710] fails for our servers in no case that it passes for grpc-go',
    async () => {
      const [layer, server, grpcGo] = await Promise.all([
        serveHttp().then((port) => run(h2spec!, port)),
        serveGrpc().then((port) => run(h2spec!, port)),
        serveGrpcGo(greeter!).then((port) => run(h2spec!, port)),
      ])
      expect(layer.cases.length).toBeGreaterThan(140)
      expect(server.cases).toEqual(layer.cases)
      expect(grpcGo.cases).toEqual(layer.cases)
      expect(layer.failed).toEqual([])
      expect(server.failed).toEqual(Object.keys(explained))
      expect(grpcGo.failed).toEqual(expect.arrayContaining([...server.failed]))
    },
  )
})
