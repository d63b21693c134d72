import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Answer, HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const limit = 256 * 1024
const path = '/api/v1/namespaces/default/configmaps'
const json = 'application/json'
const yaml = 'application/yaml'
const protobuf = 'application/vnd.kubernetes.protobuf'

let server: InProcessServer
let admin: HttpsCaller

beforeAll(async () => {
  const flags = ['--max-request-body-bytes', '256Ki']
  server = await startInProcess({ flags, logLevel: 'info' })
  admin = await server.admin()
})
afterAll(() => server.close())

/** A length-delimited field of a protobuf message. */
function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content)
  const head = [(number << 3) | 2]
  for (let rest = bytes.length; ; rest >>>= 7) {
    head.push(rest > 127 ? (rest & 127) | 128 : rest)
    if (rest <= 127) return Buffer.concat([Buffer.from(head), bytes])
  }
}

/** An object in the envelope in which Kubernetes sends protobuf. */
function enveloped(kind: string, message: Buffer): Buffer {
  const type = Buffer.concat([field(1, 'v1'), field(2, kind)])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, message)])
}

const named = (name: string): Buffer => field(1, field(1, name))
const entry = (key: string, value: Buffer | string): Buffer =>
  field(2, Buffer.concat([field(1, key), field(2, value)]))
const configMap = (name: string, data: string): string =>
  JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { a: data } })
const notUtf8 = Buffer.from([0x61, 0xff, 0xfe])

/** Everything that the store holds in the namespace, each object with its version. */
async function contents(): Promise<string> {
  return JSON.stringify((await admin.get(path)).object['items'])
}

const auditLog = (): Promise<string> => readFile(join(server.dataDirectory, 'audit.log'), 'utf8')

/** What became of a request, and whether anything has changed by it. */
async function outcomeOf(send: () => Promise<Answer>): Promise<object> {
  const before = await contents()
  const { status, object } = await send()
  const isStatus = object.kind === 'Status' && object['code'] === status
  return { code: status, isStatus, changed: (await contents()) !== before }
}

const outcome = (body: string | Buffer, headers: Record<string, string>): Promise<object> =>
  outcomeOf(() => admin.post(path, body, headers))

const refused = (code: number): object => ({ code, isStatus: true, changed: false })

test('the three encodings are understood, so what follows can fail [GND-R63]', async () => {
  const good: [string, string | Buffer][] = [
    [json, configMap('as-json', 'x')],
    [yaml, 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: as-yaml}\ndata: {a: x}\n'],
    [protobuf, enveloped('ConfigMap', Buffer.concat([named('as-protobuf'), entry('a', 'x')]))],
  ]
  for (const [type, body] of good)
    expect((await admin.post(path, body, { 'content-type': type })).status).toBe(201)
  const gzipped = gzipSync(configMap('as-gzip', 'x'))
  const packed = { 'content-type': json, 'content-encoding': 'gzip' }
  expect((await admin.post(path, gzipped, packed)).status).toBe(201)
})

describe('a body is refused and changes nothing [GND-R63]', () => {
  const whole = enveloped('ConfigMap', Buffer.concat([named('bad'), entry('a', 'x'.repeat(100))]))
  const unpacked = Buffer.alloc(100 * limit, 0x20)
  const groups = Buffer.alloc(100_000, (3 << 3) | 3)

  test.each<[string, string, string | Buffer]>([
    ['cut off', json, configMap('bad', 'x').slice(0, -10)],
    ['cut off', yaml, 'metadata: {name: bad'],
    ['cut off', protobuf, whole.subarray(0, -50)],
    ['empty', json, ''],
    ['empty', protobuf, ''],
    ['nested 100,000 deep', json, `{"data":${'['.repeat(100_000)}`],
    ['nested 100,000 deep and closed', json, `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['nested 10,000 deep', yaml, `data: ${'['.repeat(10_000)}`],
    ['nested 600 deep by indentation', yaml, nestedByIndentation(600)],
    ['nested 100,000 deep', protobuf, enveloped('ConfigMap', groups)],
    ['not UTF-8', json, Buffer.concat([Buffer.from('{"data":{"a":"'), notUtf8])],
    ['not UTF-8', yaml, Buffer.concat([Buffer.from('metadata: {name: bad}\ndata: {a: '), notUtf8])],
    [
      'not UTF-8',
      protobuf,
      enveloped('ConfigMap', Buffer.concat([named('bad'), entry('a', notUtf8)])),
    ],
    ['followed by something else', json, `${configMap('bad', 'x')} {}`],
    ['several documents', yaml, `${configMap('bad', 'x')}\n---\n${configMap('bad2', 'x')}\n`],
    ['without its magic', protobuf, whole.subarray(4)],
    [
      'with a length beyond its end',
      protobuf,
      Buffer.from('k8s\0\x12\xff\xff\xff\xff\x0f', 'latin1'),
    ],
    ['a billion laughs', yaml, billionLaughs()],
    ['a list instead of an object', json, '[]'],
    ['a number where a text belongs', json, '{"metadata":{"name":"bad"},"data":{"a":1}}'],
    ['text in place of protobuf', protobuf, configMap('bad', 'x')],
    ['protobuf in place of text', json, whole],
  ])('%s (%s)', async (_name, type, body) => {
    expect(await outcome(body, { 'content-type': type })).toEqual(refused(400))
  })

  test.each<[string, string, string | Buffer]>([
    ['larger than the limit', json, configMap('bad', 'x'.repeat(limit))],
    ['larger than the limit', yaml, configMap('bad', 'x'.repeat(limit))],
    ['larger than the limit', protobuf, enveloped('ConfigMap', entry('a', 'x'.repeat(limit)))],
  ])('%s (%s), with and without a length', async (_name, type, body) => {
    expect(await outcome(body, { 'content-type': type })).toEqual(refused(413))
    const chunked = { 'content-type': type, 'transfer-encoding': 'chunked' }
    expect(await outcome(body, chunked)).toEqual(refused(413))
  })

  test.each([json, yaml, protobuf])('a small gzip that unpacks to a large %s', async (type) => {
    const bomb = gzipSync(unpacked)
    expect(bomb.length).toBeLessThan(limit)
    const headers = { 'content-type': type, 'content-encoding': 'gzip' }
    expect(await outcome(bomb, headers)).toEqual(refused(413))
  })

  test('a gzip that is none, or is cut off', async () => {
    const headers = { 'content-type': json, 'content-encoding': 'gzip' }
    const cutOff = gzipSync(configMap('bad', 'x')).subarray(0, -10)
    expect(await outcome(configMap('bad', 'x'), headers)).toEqual(refused(400))
    expect(await outcome(cutOff, headers)).toEqual(refused(400))
  })

  test.each([
    ['a content encoding that we do not know', { 'content-encoding': 'br' }],
    ['a content type that we do not know', { 'content-type': 'text/plain' }],
  ])('%s', async (_name, headers) => {
    expect(await outcome(configMap('bad', 'x'), headers)).toEqual(refused(415))
  })

  test('a body of which half comes before the client goes', async () => {
    const before = await contents()
    const socket = await admin.socket()
    const body = configMap('half', 'x')
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`
    socket.write(`${head}${body.slice(0, -1)}`, () => socket.destroy())
    await vi.waitFor(async () => expect(await auditLog()).toContain('Connection closed early'), {
      timeout: 10_000,
    })
    expect(await contents()).toBe(before)
  })
})

/** Aliases of aliases: a few bytes that stand for a billion. */
function billionLaughs(): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < 10; i++) {
    const alias = `*a${i - 1}`
    lines.push(`a${i}: &a${i} [${Array.from({ length: 10 }, () => alias).join(', ')}]`)
  }
  return lines.join('\n')
}

function nestedByIndentation(depth: number): string {
  return Array.from({ length: depth }, (_none, i) => `${' '.repeat(i)}a:`).join('\n')
}

describe('what does not fit its address is refused and changes nothing [GND-R63]', () => {
  const post = { method: 'POST', path }
  const put = { method: 'PUT', path: `${path}/there` }
  beforeAll(async () => {
    await admin.post(path, configMap('there', 'x'))
  })

  test.each([
    ['another kind', post, { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'bad' } }, 400],
    [
      'another version',
      post,
      { kind: 'ConfigMap', apiVersion: 'v2', metadata: { name: 'b' } },
      400,
    ],
    ['another group', post, { kind: 'ConfigMap', apiVersion: 'apps/v1', metadata: {} }, 400],
    ['another namespace', post, { metadata: { name: 'bad', namespace: 'kube-system' } }, 400],
    ['no name', post, { metadata: {} }, 422],
    ['a name that is none', post, { metadata: { name: 'Not A Name' } }, 422],
    ['a resourceVersion of its own', post, { metadata: { name: 'b', resourceVersion: '5' } }, 400],
    ['another name', put, { metadata: { name: 'other' } }, 400],
    ['a stale resourceVersion', put, { metadata: { name: 'there', resourceVersion: '1' } }, 409],
    ['a uid of another object', put, { metadata: { name: 'there', uid: 'another' } }, 409],
    [
      'an object that is not there',
      { ...put, path: `${path}/gone` },
      { metadata: { name: 'gone' } },
      404,
    ],
  ])('%s', async (_name, request, object, code) => {
    const { method } = request
    const send = () => admin.request(request.path, { method, body: object })
    expect(await outcomeOf(send)).toEqual(refused(code))
  })

  test.each<[string, string, string | Buffer, number]>([
    ['merge', 'cut off', '{"data":', 400],
    ['merge', 'nested too deep', `{"a":${'['.repeat(100_000)}`, 400],
    ['merge', 'not UTF-8', Buffer.concat([Buffer.from('{"data":{"a":"'), notUtf8]), 400],
    ['merge', 'too large', JSON.stringify({ data: { a: 'x'.repeat(limit) } }), 413],
    ['merge', 'of a stale version', '{"metadata":{"resourceVersion":"1"},"data":{"b":"y"}}', 409],
    ['strategic-merge', 'with a wrong directive', '{"data":{"$patch":"nonsense"}}', 400],
    ['json', 'with a wrong operation', '[{"op":"nonsense","path":"/data"}]', 422],
    ['json', 'that is no list', '{"not":"a list"}', 400],
    ['json', 'of what is not there', '[{"op":"remove","path":"/data/absent"}]', 422],
    ['json', 'of 10,001 steps', `[${'{"op":"test","path":""},'.repeat(10_000)}{}]`, 413],
  ])('a bad %s patch: %s', async (type, _name, body, code) => {
    const headers = { 'content-type': `application/${type}-patch+json` }
    const send = () => admin.request(`${path}/there`, { method: 'PATCH', body, headers })
    expect(await outcomeOf(send)).toEqual(refused(code))
  })

  test.each([
    ['is cut off', '{"kind":"DeleteOptions"', 400],
    ['is another kind', '{"kind":"ConfigMap","apiVersion":"v1"}', 400],
    ['has a stale precondition', '{"preconditions":{"resourceVersion":"1"}}', 409],
    ['has a policy that is none', '{"propagationPolicy":"Sideways"}', 422],
  ])('a delete whose body %s', async (_name, body, code) => {
    const send = () => admin.request(`${path}/there`, { method: 'DELETE', body })
    expect(await outcomeOf(send)).toEqual(refused(code))
  })
})

describe('a request that two readers could take for two different ones is refused [GND-R63]', () => {
  test.each([
    ['two lengths', ['Content-Length: 2', 'Content-Length: 20']],
    ['a length and chunks', ['Content-Length: 2', 'Transfer-Encoding: chunked']],
    ['a length that is none', ['Content-Length: +2']],
    ['an encoding that we do not know', ['Transfer-Encoding: gzip, chunked']],
    ['an encoding that only looks like one', ['Transfer-Encoding: xchunked']],
    ['an odd spelling of the length', ['Content_Length: 2', 'Content-Length: 2']],
    ['a header that goes on in the next line', ['X-A: b', ' c: d', 'Content-Length: 2']],
    ['a space before the colon', ['Content-Length : 2']],
    ['two hosts', ['Host: b', 'Content-Length: 2']],
    ['two content types', ['Content-Type: text/plain', 'Content-Type: application/json']],
  ])('%s', async (_name, lines) => {
    const before = await contents()
    const socket = await admin.socket()
    const head = [`POST ${path} HTTP/1.1`, 'Host: a', ...lines]
    socket.end(`${head.join('\r\n')}\r\n\r\n{}GET /version HTTP/1.1\r\nHost: a\r\n\r\n`)
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(await contents()).toBe(before)
  })
})

describe('an odd request is a fault of its sender, never of the server [GND-R63]', () => {
  const forged = Buffer.from('{"v":"meta.k8s.io/v1","rv":-5,"start":"x"}').toString('base64url')
  const odd = [
    ['//', '/api/v2/namespaces', '/apis/nonsense/v1', '/apis/apps/v1/deployments', '/openapi/v3/x'],
    [
      '/%00',
      '/%2e%2e',
      '/..',
      '/%ff',
      '/%',
      '/a%2fb',
      '/there/x',
      '/there/a/b',
      '/there?timeout=x',
    ],
    [
      '?limit=-1',
      '?limit=1e9',
      '?limit=99999999999999999999',
      '?continue=x',
      `?continue=${forged}`,
    ],
    ['?resourceVersion=-1', '?resourceVersion=9e99', '?resourceVersionMatch=Exact', '?a=%', '?%'],
    ['?labelSelector=%00', '?labelSelector=a+in+(', `?labelSelector=${'a,'.repeat(3_000)}`],
    ['?fieldSelector=metadata.name=a%5C', '?fieldSelector=,,,,', '?fieldSelector=x%3D..%2F..'],
    ['?sendInitialEvents=true', '?timeout=999999h', '?pretty=%00', '?dryRun=Some'],
  ]
    .flat()
    .map((part) => (/^\/(\/|api|openapi)/.test(part) ? part : `${path}${part}`))
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']

  test.each(methods)('%s', async (method) => {
    const withBody = method.startsWith('P') ? { body: '{}' } : {}
    const answers = await Promise.all(
      odd.map(async (url) => [url, (await admin.request(url, { method, ...withBody })).status]),
    )
    expect(answers.filter(([, status]) => Number(status) >= 500)).toEqual([])
    expect(server.log).not.toContain('request failed unexpectedly')
  })

  test.each([
    'GET https://127.0.0.1/version HTTP/1.1\r\nHost: a',
    'GET version HTTP/1.1\r\nHost: a',
    'OPTIONS * HTTP/1.1\r\nHost: a',
    'GET /version HTTP/1.1\r\nHost: a\r\nExpect: something',
    'GET /version HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade',
    `GET ${path}/there HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade`,
  ])('%j', async (head) => {
    const socket = await admin.socket()
    socket.end(`${head}\r\n\r\n`)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 4\d\d /)
  })
})

describe('of 10,000 parallel creates of one name', () => {
  const connections = 64
  const total = 10_000

  /** Sends many requests at once on one connection and counts the codes that come back. */
  async function flood(socket: TLSSocket, count: number): Promise<Map<string, number>> {
    const body = configMap('only-one', 'x')
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${json}\r\n`
    const request = `${head}Content-Length: ${body.length}\r\n\r\n${body}`
    const last = request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
    const codes = new Map<string, number>()
    let rest = ''
    socket.on('data', (chunk) => {
      const lines = (rest + String(chunk)).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const code = /^HTTP\/1\.1 (\d+)/.exec(line.slice(line.lastIndexOf('HTTP/1.1')))?.[1]
        if (code) codes.set(code, (codes.get(code) ?? 0) + 1)
      }
    })
    socket.write(request.repeat(count - 1) + last)
    await once(socket, 'close')
    return codes
  }

  test('exactly one wins [GND-R64]', { timeout: 120_000 }, async () => {
    const sockets = await Promise.all(Array.from({ length: connections }, () => admin.socket()))
    const share = (i: number): number =>
      Math.floor(total / connections) + (i < total % connections ? 1 : 0)
    const counts = await Promise.all(sockets.map((socket, i) => flood(socket, share(i))))
    const sum = (code: string): number =>
      counts.reduce((count, codes) => count + (codes.get(code) ?? 0), 0)
    expect([sum('201'), sum('409')]).toEqual([1, total - 1])
    const items = (await admin.get(path)).object['items'] as { metadata: { name: string } }[]
    expect(items.filter(({ metadata }) => metadata.name === 'only-one')).toHaveLength(1)
  })
})
