import { describe, expect, test } from 'vitest'
import { identityHeaderNames, neededHeaderNames } from '../../test/support/identity-header-names.ts'
import { allowedHeaders, isIdentityHeader, rememberByName } from './identity-headers.ts'

/** How a careless reader behind us could still take a name for the one that is meant. */
const spellings: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toLowerCase(),
  (name) => name.toUpperCase(),
  (name) => name.replaceAll('-', '_'),
  (name) => name.replaceAll('-', '.'),
  (name) => name.replaceAll('-', '--'),
  (name) => name.replaceAll(/[-_]/g, '!'),
  (name) => name.replaceAll('-', '~').toUpperCase(),
]

describe('headers by which other systems state an identity [SEC-R1401]', () => {
  test('there are many of them in the table', () => {
    expect(identityHeaderNames.length).toBeGreaterThan(200)
  })
  test.each(identityHeaderNames)('%s (%s) is removed in every spelling', (name) => {
    const kept = spellings.map((spell) => spell(name)).filter((each) => !isIdentityHeader(each))
    expect(kept).toEqual([])
  })
  test.each(['X-Corp-User-Id', 'Acme-Principal', 'X-Edge-Client-Cert-Dn', 'X-Partner-Groups'])(
    '%s, which no product has yet, is removed by the parts of its name',
    (name) => {
      expect(isIdentityHeader(name)).toBe(true)
    },
  )
})

describe('headers that applications need [SEC-R1402]', () => {
  test.each(neededHeaderNames)('%s is kept', (name) => {
    expect([isIdentityHeader(name), isIdentityHeader(name.toLowerCase())]).toEqual([false, false])
  })
  test.each(['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Forwarded-Uri'])(
    '%s is kept in this spelling only: it is extended or replaced on the way',
    (name) => {
      expect(spellings.map((spell) => isIdentityHeader(spell(name)))).toEqual([
        false,
        false,
        false,
        true,
        true,
        true,
        true,
        true,
      ])
    },
  )
})

describe('what an add-on declares [SEC-R1403]', () => {
  test('is kept in that spelling, and in no other', () => {
    const allowed = allowedHeaders(['X-Auth-Token', 'x-scope-orgid'])
    const isKept = (name: string): boolean => !isIdentityHeader(name, allowed)
    expect(['X-Auth-Token', 'x-auth-token', 'X-Scope-OrgID'].map(isKept)).toEqual([
      true,
      true,
      true,
    ])
    expect(['X_Auth_Token', 'X-Auth-User', 'X.Scope.OrgID'].map(isKept)).toEqual([
      false,
      false,
      false,
    ])
  })

  test.each([
    'Authorization',
    'Impersonate-User',
    'Impersonate-Extra-x',
    'X-Remote-User',
    'X-Remote-Extra-x',
    'X-Authenticated-User',
    'X-Authenticated-User-Encoding',
    'X-Forwarded-User',
    'X-Forwarded-For',
    'Forwarded',
    'Proxy-Authorization',
    'Sallyport-Renew-Tunnel',
    'Sec-WebSocket-Protocol',
    'Transfer-Encoding',
    'Content-Length',
    'Connection',
    'Cookie',
    'Host',
    'X_User',
    'X User',
    '*',
    '',
  ])('never %j', (name) => {
    expect(() => allowedHeaders([name])).toThrow('cannot allow')
  })

  test.each(['Authorization', 'Impersonate-User', 'X-Remote-User', 'X-Authenticated-User'])(
    '%s is removed even if it came past that check',
    (name) => {
      expect(isIdentityHeader(name, new Set([name.toLowerCase()]))).toBe(true)
    },
  )
})

test('what was computed for a name is kept for a bounded number of them', () => {
  let count = 0
  const of = rememberByName((name) => {
    count++
    return name.length
  })
  expect([of('a'), of('a'), count]).toEqual([1, 1, 1])
  const long = 'x'.repeat(100)
  expect([of(long), of(long), count]).toEqual([100, 100, 3])
  for (let index = 0; index < 2_000; index++) of(`n${index}`)
  of('a')
  expect(count).toBe(2_004)
})
