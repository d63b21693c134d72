import { describe, expect, test } from 'vitest'
import { answerHeaders } from './answer-headers.ts'

const prefix = '/api/v1/namespaces/ns/services/dash/proxy'
const server = 'https://cluster:6443'
const own = { prefix, mount: '', server, trusted: true }
const shared = { prefix, mount: prefix, server, trusted: false }
const mounted = { prefix, mount: `/k8s${prefix}`, server, trusted: false }

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
    expect(answerHeaders({ location }, own)).toEqual(['location', expected])
  })

  test.each([
    ['a=b; Domain=localhost; HttpOnly', 'a=b; HttpOnly'],
    ['a=b; domain = .ns.localhost;Path=/x; Secure', 'a=b; Secure; Path=/x'],
    [`a=b; Path=${prefix}/x`, 'a=b; Path=/x'],
    [`a=b; Path=${prefix}`, 'a=b; Path=/'],
    ['a=b; Path=/; DOMAIN', 'a=b; Path=/'],
    ['a=domain=x; Path=/a; Path=/b', 'a=domain=x; Path=/b'],
  ])('[CRED-P9] the cookie %s becomes %s', (cookie, expected) => {
    expect(answerHeaders({ 'set-cookie': [cookie] }, own)).toEqual(['set-cookie', expected])
  })
})

test('a cookie with spaces without end is read once [ADDON-X2]', () => {
  // Within the time of a test: read again from each space on, every one of them takes a second or two.
  const cookie = `a=b; Path=/x${' '.repeat(16_000)}y`
  const cookies = Array.from({ length: 20 }, () => cookie)
  expect(answerHeaders({ 'set-cookie': cookies }, own)).toHaveLength(40)
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
    const headers = answerHeaders({ 'set-cookie': [cookie, 'c=d'] }, shared)
    expect(headers.slice(0, 4)).toEqual([
      'set-cookie',
      expected,
      'set-cookie',
      `c=d; Path=${prefix}/`,
    ])
  })

  test('an API prefix goes before locations and cookies', () => {
    expect(answerHeaders({ location: `${prefix}/x`, 'set-cookie': ['a=b'] }, mounted)).toEqual(
      expect.arrayContaining([`/k8s${prefix}/x`, `a=b; Path=/k8s${prefix}/`]),
    )
  })

  test('[CRED-P15] a page runs without the rights of its origin', () => {
    const headers = answerHeaders({ 'content-security-policy': "default-src 'self'" }, shared)
    expect(headers).toEqual([
      'content-security-policy',
      "default-src 'self'",
      'content-security-policy',
      expect.stringMatching(/^sandbox (?!.*allow-same-origin)/),
    ])
  })
})

test('an answer of the API itself loses only what belongs to one connection', () => {
  const headers = {
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    'keep-alive': 'timeout=5',
    'transfer-encoding': 'chunked',
    location: '/a',
    'set-cookie': ['a=b; Domain=x'],
  }
  expect(answerHeaders(headers)).toEqual(['location', '/a', 'set-cookie', 'a=b; Domain=x'])
})
