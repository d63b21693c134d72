import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createFetch } from './fetch.ts'
import { FakeSource, TransportLab, textOf, tokenCredential, whoAmI } from './transport-lab.suite.ts'

let lab: TransportLab
beforeAll(async () => {
  lab = await TransportLab.open()
})
afterEach(() => lab.clear())

const source = () => new FakeSource(tokenCredential('t1'), tokenCredential('t2'))

describe('the fetch of a cluster [CRED-T2]', () => {
  test('answers with a Response of this Node, its address and its headers', async () => {
    const server = await lab.serve((request, response) => {
      response.setHeader(
        'x-seen',
        `${request.method} ${request.url} ${String(request.headers['x-a'])}`,
      )
      response.setHeader('set-cookie', ['a=1', 'b=2'])
      whoAmI(request, response)
    })
    const fetch = createFetch(lab.connect(server, { credentials: source() }))
    const response = await fetch(`${server.url}/api?x=1#f`, { headers: { 'x-a': 'b' } })
    expect(response).toBeInstanceOf(Response)
    expect(response.url).toBe(`${server.url}/api?x=1`)
    expect(response.headers.get('x-seen')).toBe('GET /api?x=1 b')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await response.json()).toMatchObject({ authorization: 'Bearer t1' })
  })

  test('goes below the path of the server, relative addresses too', async () => {
    const server = await lab.serve((request, response) => response.end(request.url))
    const fetch = createFetch(lab.connect(server, { servers: `${server.url}/prefix` }))
    expect(await (await fetch('/api')).text()).toBe('/prefix/api')
    expect(await (await fetch(new URL(`${server.url}/prefix/api`))).text()).toBe('/prefix/api')
    await expect(fetch(`${server.url}/prefixed`)).rejects.toThrow(/go to .*prefix only/)
  })

  const echo = () =>
    lab.serve(async (request, response) => {
      const text = await textOf(request)
      const { authorization, 'content-type': type } = request.headers
      response.statusCode = authorization === 'Bearer t2' ? 200 : 401
      response.end(`${request.method} ${type} ${text}`)
    })
  const stream = () =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from('body'))
        controller.close()
      },
    })

  test.each<[string, string | URL | undefined, RequestInit, string]>([
    ['text', undefined, { method: 'post', body: 'body' }, '200 POST text/plain;charset=UTF-8 body'],
    ['bytes', undefined, { method: 'PUT', body: Buffer.from('body') }, '200 PUT undefined body'],
    [
      'a form',
      undefined,
      { method: 'POST', body: new URLSearchParams({ a: 'b' }) },
      '200 POST application/x-www-form-urlencoded;charset=UTF-8 a=b',
    ],
    ['none', undefined, { method: 'DELETE' }, '200 DELETE undefined '],
  ])('replays a body of %s after a 401 [CRED-C6]', async (_, __, init, expected) => {
    const server = await echo()
    const fetch = createFetch(lab.connect(server, { credentials: source() }))
    const response = await fetch(server.url, init)
    expect(`${response.status} ${await response.text()}`).toBe(expected)
  })

  test('sends a stream once, also one in a Request [CRED-C6]', async () => {
    const server = await echo()
    for (const asRequest of [false, true]) {
      const fetch = createFetch(lab.connect(server, { credentials: source() }))
      const init = { method: 'POST', body: stream(), duplex: 'half' } as const
      const response = asRequest
        ? await fetch(new Request(server.url, init))
        : await fetch(server.url, init)
      expect(`${response.status} ${await response.text()}`).toBe('401 POST undefined body')
    }
  })

  test('streams an answer, and an abort ends it', async () => {
    const server = await lab.serve((_, response) => void response.write('first'))
    const abort = new AbortController()
    const fetch = createFetch(lab.connect(server))
    const { body } = await fetch(server.url, { signal: abort.signal })
    const reader = body!.getReader()
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('first')
    abort.abort()
    await expect(reader.read()).rejects.toThrow(/abort/)
    await expect(fetch(server.url, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/)
  })

  test('an answer without a body has none', async () => {
    const server = await lab.serve((_, response) => {
      response.statusCode = 204
      response.end()
    })
    const response = await createFetch(lab.connect(server))(server.url)
    expect([response.status, response.body]).toEqual([204, null])
  })

  test('a body with GET is refused as fetch does it', async () => {
    const server = await lab.serve(whoAmI)
    const fetch = createFetch(lab.connect(server))
    const init = { body: 'x' }
    await expect(fetch(server.url, init)).rejects.toThrow(TypeError)
  })
})

describe('redirects [CRED-S10]', () => {
  const redirecting = async (location: (own: string) => string, status = 302) => {
    const elsewhere: (string | undefined)[] = []
    const other = await lab.serve((request, response) => {
      elsewhere.push(request.headers.authorization)
      response.end()
    })
    const server = await lab.serve((request, response) => {
      if (request.url === '/end') response.end(`${request.method} ${request.headers.authorization}`)
      else response.writeHead(status, { location: location(other.url) }).end()
    })
    const fetch = createFetch(lab.connect(server, { credentials: source() }))
    return { server, elsewhere, fetch }
  }

  test.each([
    [302, 'GET', 'GET'],
    [302, 'POST', 'GET'],
    [303, 'PUT', 'GET'],
    [307, 'POST', 'POST'],
  ])(
    '%s of a %s is followed on the same origin as a %s, with the credential',
    async (status, method, then) => {
      const { server, fetch } = await redirecting(() => '/end', status)
      const response = await fetch(`${server.url}/start`, { method })
      expect(await response.text()).toBe(`${then} Bearer t1`)
      expect([response.redirected, response.url]).toEqual([true, `${server.url}/end`])
    },
  )

  test('to another origin are not followed', async () => {
    const { server, elsewhere, fetch } = await redirecting((other) => other)
    await expect(fetch(server.url)).rejects.toThrow(/redirects to another origin/)
    expect(elsewhere).toEqual([])
  })

  test('are shown or refused when the caller says so, and never go on for ever', async () => {
    const { server, fetch } = await redirecting(() => '/start')
    expect((await fetch(server.url, { redirect: 'manual' })).status).toBe(302)
    await expect(fetch(server.url, { redirect: 'error' })).rejects.toThrow(TypeError)
    await expect(fetch(server.url)).rejects.toThrow(TypeError)
  })

  test('requests to another origin are refused before the source is asked', async () => {
    const server = await lab.serve(whoAmI)
    const credentials = source()
    const fetch = createFetch(lab.connect(server, { credentials }))
    await expect(fetch('https://example.com/')).rejects.toThrow(/not to https:\/\/example.com/)
    expect(credentials.asked).toBe(0)
  })
})
