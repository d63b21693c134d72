import { describe, expect, test } from 'vitest'
import { sandboxPolicy } from '../http/index.ts'
import { ProxyPolicy, type ResponsePlace } from './forward-policy.ts'
import { SeenCookies } from './seen-cookies.ts'

const prefix = '/api/v1/namespaces/ns/services/dash/proxy'
const server = 'https://cluster:6443'
const host = { name: 'dash--ns.localhost', authority: 'dash--ns.localhost:8001' }
const own: ResponsePlace = { kind: 'own', prefix, host }
const shared: ResponsePlace = { kind: 'shared', prefix, mount: prefix }
const mounted: ResponsePlace = { kind: 'shared', prefix, mount: `/k8s${prefix}` }
const api: ResponsePlace = { kind: 'api' }

const dataOnly = [
  'content-security-policy',
  sandboxPolicy,
  'x-content-type-options',
  'nosniff',
  'cross-origin-resource-policy',
  'same-origin',
]

const at = (place: ResponsePlace, headers: Record<string, string | string[]>): string[] => {
  const rawHeaders = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().flatMap((value) => [name, value]),
  )
  return new ProxyPolicy(place, { server, cookies: new SeenCookies() }).responseHeaders({
    rawHeaders,
  })
}

describe("on an add-on's own origin", () => {
  test.each([
    [`${prefix}/login?next=1`, '/login?next=1'],
    [`${prefix}`, '/'],
    [`${prefix}//evil.com/x`, '/evil.com/x'],
    [`${server}${prefix}/login`, '/login'],
    [`${prefix}x/login`, `${prefix}x/login`],
    ['https://idp.example.com/', 'https://idp.example.com/'],
    ['login', 'login'],
    ['/elsewhere', '/elsewhere'],
  ])('[CRED-P8] the location %s becomes %s', (location, expected) => {
    expect(at(own, { location })).toEqual(['location', expected])
  })

  test.each([
    ['a=b; Domain=localhost; HttpOnly', 'a=b; HttpOnly'],
    ['a=b; domain = .ns.localhost;Path=/x; Secure', 'a=b; Secure; Path=/x'],
    [`a=b; Path=${prefix}/x`, 'a=b; Path=/x'],
    [`a=b; Path=${prefix}`, 'a=b; Path=/'],
    ['a=b; Path=/; DOMAIN', 'a=b; Path=/'],
    ['a=domain=x; Path=/a; Path=/b', 'a=domain=x; Path=/b'],
  ])('[CRED-P9] the cookie %s becomes %s', (cookie, expected) => {
    expect(at(own, { 'set-cookie': [cookie] })).toEqual(['set-cookie', expected])
  })

  test.each([
    [sandboxPolicy, []],
    [`default-src 'self', ${sandboxPolicy}`, ["default-src 'self'"]],
    [`${sandboxPolicy}, ${sandboxPolicy}`, [sandboxPolicy]],
    ['sandbox allow-scripts', ['sandbox allow-scripts']],
    ["default-src 'self'", ["default-src 'self'"]],
  ])('[SEC-R122] of the policy %s stays %j', (policy, kept) => {
    expect(at(own, { 'content-security-policy': policy })).toEqual(
      kept.flatMap((value) => ['content-security-policy', value]),
    )
  })
})

test('a cookie with spaces without end is read once [ADDON-X2]', () => {
  // Within the time of a test: read again from each space on, every one of them takes a second or two.
  const cookie = `a=b; Path=/x${' '.repeat(16_000)}y`
  const cookies = Array.from({ length: 20 }, () => cookie)
  expect(at(own, { 'set-cookie': cookies })).toHaveLength(40)
})

describe('on the origin that add-ons share', () => {
  test.each([
    ['a=b; Domain=localhost; Path=/', `a=b; Path=${prefix}/`],
    ['a=b', `a=b; Path=${prefix}/`],
    [`a=b; Path=${prefix}/x`, `a=b; Path=${prefix}/x`],
    ['a=b; Path=/login', `a=b; Path=${prefix}/login`],
    ['a=b; Path=login', `a=b; Path=${prefix}/`],
    ['a=b; Path=/../x', `a=b; Path=${prefix}/`],
    [`a=b; Path=${prefix}/.%2E/x`, `a=b; Path=${prefix}/`],
    [`a=b; Path=${prefix}x`, `a=b; Path=${prefix}${prefix}x`],
  ])('[CRED-P9] the cookie %s becomes %s', (cookie, expected) => {
    const headers = at(shared, { 'set-cookie': [cookie, 'c=d'] })
    expect(headers.slice(0, 4)).toEqual([
      'set-cookie',
      expected,
      'set-cookie',
      `c=d; Path=${prefix}/`,
    ])
  })

  test('an API prefix goes before locations and cookies', () => {
    expect(at(mounted, { location: `${prefix}/x`, 'set-cookie': ['a=b'] })).toEqual(
      expect.arrayContaining([`/k8s${prefix}/x`, `a=b; Path=/k8s${prefix}/`]),
    )
  })

  test.each([
    ['clear-site-data', '"*"'],
    ['service-worker-allowed', '/'],
    ['alt-svc', 'h3=":443"'],
    ['strict-transport-security', 'max-age=1; includeSubDomains'],
    ['access-control-allow-origin', 'https://evil.example'],
    ['access-control-allow-credentials', 'true'],
    ['access-control-allow-private-network', 'true'],
    ['access-control-max-age', '600'],
    ['nel', '{}'],
    ['report-to', '{}'],
    ['reporting-endpoints', 'a="https://evil.example"'],
    ['accept-ch', 'Sec-CH-UA'],
    ['use-as-dictionary', 'match="/api/*"'],
    ['www-authenticate', 'Basic'],
  ])('[SEC-R123] an add-on cannot send %s', (name, value) => {
    expect(at(shared, { [name]: value })).toEqual(dataOnly)
  })

  test.each([
    ['content of an application', shared],
    ['the API itself', api],
  ])('[SEC-R121, CRED-P15] %s is data and never runs, whatever it says', (_name, place) => {
    const headers = at(place, {
      'content-security-policy': 'sandbox allow-scripts allow-same-origin',
      'x-content-type-options': 'none',
      'cross-origin-resource-policy': 'cross-origin',
      'content-type': 'text/html',
    })
    expect(headers).toEqual([
      'content-security-policy',
      'sandbox allow-scripts allow-same-origin',
      'content-type',
      'text/html',
      ...dataOnly,
    ])
    expect(sandboxPolicy).toMatch(/^sandbox(?![^;]*allow-same-origin)/)
  })
})

test('a response of the API itself loses only what belongs to one connection', () => {
  const headers = {
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    'keep-alive': 'timeout=5',
    'transfer-encoding': 'chunked',
    location: '/a',
    'set-cookie': ['a=b; Domain=x'],
  }
  expect(at(api, headers)).toEqual(['location', '/a', 'set-cookie', 'a=b; Domain=x', ...dataOnly])
})
