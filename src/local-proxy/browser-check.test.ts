import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { refuseExecution, refuseForeignPages } from './browser-check.ts'
import { Refusal } from './refusal.ts'

const sites = ['', 'none', 'same-origin', 'same-site', 'cross-site', 'Same-Origin', 'friendly']
const modes = ['navigate document', 'navigate iframe', 'no-cors image']
const methods = ['GET', 'POST', 'DELETE', 'OPTIONS']

/** Hosts of the proxy, and what is the same origin there and nowhere else. */
const hosts = [
  'localhost:8001',
  '127.0.0.1:8001',
  '[::1]:8001',
  'proxy.lan:8001',
  'dash--kube-system.localhost:8001',
]
const foreignOrigins = (host: string): string[] => [
  'https://evil.example',
  'null',
  '',
  'http://localhost:3000',
  'http://127.0.0.1:3000',
  'http://shop--apps.localhost:8001',
  'http://dash--kube-system.localhost:3000',
  `https://${host}`,
  `http://${host}/`,
  `http://${host}.evil.example`,
  `http://evil.example@${host}`,
  `${host}`,
  ...hosts.filter((each) => each !== host).map((each) => `http://${each}`),
]

/** Among them the host of the proxy as the name of a user. */
const foreignReferers = [
  'https://evil.example/x',
  'http://localhost:3000/x',
  'http://shop--apps.localhost:8001/x',
  'http://localhost:8001@evil.example/x',
  'about:blank',
  '',
]

type Headers = readonly (readonly [string, string])[]

function isLet(method: string, host: string, headers: Headers): boolean {
  const [, name = ''] = /^(.*?)(?::\d+)?$/.exec(host) ?? []
  try {
    refuseForeignPages({ method, host: { name, authority: host }, rawHeaders: headers.flat() })
    return true
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return false
  }
}

/** Header lines of one request, without those that are not sent. */
const lines = (...pairs: readonly (readonly [string, string | undefined])[]): Headers =>
  pairs.filter((pair): pair is [string, string] => pair[1] !== undefined)

describe('[SEC-R420, SEC-R421] requests of pages', () => {
  const { stackTraceLimit } = Error
  // Tens of thousands of refusals, of which only the kind counts.
  beforeAll(() => void (Error.stackTraceLimit = 0))
  afterAll(() => void (Error.stackTraceLimit = stackTraceLimit))

  test.each(hosts)(
    '%s: by every method, only of its own origin; links may only lead here',
    (host) => {
      const origins = [undefined, `http://${host}`, ...foreignOrigins(host)]
      const referers = [undefined, `http://${host}/x`, ...foreignReferers]
      const wrong: string[] = []
      for (const method of methods)
        for (const site of sites)
          for (const mode of modes)
            for (const origin of origins)
              for (const referer of referers) {
                const [sentMode = '', dest] = mode.split(' ')
                const headers = lines(
                  ['Origin', origin],
                  ['Referer', referer],
                  ['Sec-Fetch-Site', site || undefined],
                  ['Sec-Fetch-Mode', site === '' ? undefined : sentMode],
                  ['Sec-Fetch-Dest', site === '' ? undefined : dest],
                )
                const expected = mayPass({
                  method,
                  site,
                  mode,
                  origin,
                  referer,
                  own: `http://${host}`,
                })
                if (isLet(method, host, headers) !== expected)
                  wrong.push(`${method} ${site} ${mode} ${origin} ${referer}: must be ${expected}`)
              }
      expect(wrong).toEqual([])
    },
  )

  interface Sent {
    readonly method: string
    readonly site: string
    readonly mode: string
    readonly origin: string | undefined
    readonly referer: string | undefined
    readonly own: string
  }

  /** The rule in the words of docs/security.md. */
  function mayPass({ method, site, mode, origin, referer, own }: Sent): boolean {
    const isRead = method === 'GET' || method === 'HEAD'
    if (origin !== undefined && origin !== own) return origin === 'null' && site === 'same-origin'
    if (site === 'same-origin' || site === 'none') return true
    if (site !== '') return isRead && mode === 'navigate document'
    return isRead || origin !== undefined || referer === undefined || referer === `${own}/x`
  }

  test.each(['Origin', 'Referer', 'Sec-Fetch-Site', 'Sec-Fetch-Mode', 'Sec-Fetch-Dest'])(
    'with two headers %s are malformed',
    (name) => {
      const headers = lines([name, 'same-origin'], [name, 'same-origin'])
      expect(() =>
        refuseForeignPages({
          method: 'GET',
          host: { name: 'localhost', authority: 'localhost:8001' },
          rawHeaders: headers.flat(),
        }),
      ).toThrow('twice')
    },
  )
})

describe('[SEC-R121] on the origin of the API', () => {
  test.each([
    'script',
    'style',
    'worker',
    'sharedworker',
    'serviceworker',
    'audioworklet',
    'paintworklet',
    'xslt',
  ])('no %s comes from the cluster', (dest) =>
    expect(() => refuseExecution(['Sec-Fetch-Dest', dest])).toThrow('not executed'),
  )

  test('no service worker of a browser that sends nothing else', () => {
    expect(() => refuseExecution(['Service-Worker', 'script'])).toThrow('service worker')
  })

  test.each(['empty', 'document', 'image', 'iframe'])('%s is data', (dest) => {
    expect(() => refuseExecution(['Sec-Fetch-Dest', dest])).not.toThrow()
  })
})
