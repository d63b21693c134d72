import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GuardLab, sendRaw, startGuardLab } from '../../src/addon/guard/guard-lab.suite.ts'
import { createGuard } from '../../src/addon/guard/index.ts'
import { firstOf } from '../../src/authn/chain.ts'
import { impersonation } from '../../src/authn/impersonation.ts'
import { openTokenFile } from '../../src/authn/token-file.ts'
import { silentLogger } from '../../src/core/index.ts'

/** None of them survives a header unchanged, or all of them look like another one. */
const bad = [
  '',
  ' ',
  '\t',
  ' bob',
  'bob ',
  'bob\u00a0',
  'bob\n',
  'bob\r\nX: y',
  'bo\0b',
  'bo\u0085b',
]

describe('a name that is none is nobody [SEC-R2005]', () => {
  let lab: GuardLab
  beforeAll(async () => {
    lab = await startGuardLab({
      output: { userHeader: 'X-Authenticated-User', impersonation: true },
    })
  })
  afterAll(() => lab.stop())

  test.each(bad)('a token of %j is refused by the guard', async (sub) => {
    const token = lab.token({ claims: { sub } })
    const head = `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`
    const { status, body } = await sendRaw(lab.port, head)
    expect([status, body]).toEqual([403, expect.stringContaining('bad-claims')])
    expect(lab.addon.connections).toBe(0)
  })

  test.each(bad)('an authenticator that finds %j finds nobody', async (username) => {
    const user = { username, groups: [] }
    const method = 'lab'
    for (const found of [{ user, method }, Promise.resolve({ user, method })]) {
      const chain = firstOf([{ name: 'lab', authenticate: () => found }])
      const asked = async () =>
        chain.authenticate({ rawHeaders: [], headers: {} } as never, new AbortController().signal)
      await expect(asked()).rejects.toMatchObject({ reason: 'Unauthorized' })
    }
  })

  test.each(bad)('a token file with %j is refused', async (name) => {
    const opened = openTokenFile({
      path: 'tokens.csv',
      read: async () => `secret-token,"${name}",1\n`,
      watch: () => () => {},
      log: silentLogger,
    })
    await expect(opened).rejects.toThrow('the user name')
  })

  test.each(bad)('nobody acts as %j', async (name) => {
    const act = impersonation({
      authorizer: {
        authorize: () => ({ allowed: true, reason: '' }),
        rulesFor: async () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
      },
      denial: () => {
        throw new Error('not denied by rights')
      },
    })
    const value = Buffer.from(name).toString('latin1')
    const request = {
      rawHeaders: ['Impersonate-User', value],
      headers: { 'impersonate-user': value },
    }
    const authentication = { user: { username: 'proxy', groups: [] }, method: 'lab' }
    const attempt = async () =>
      act(request as never, authentication, { verb: 'get' }, new AbortController().signal)
    await expect(attempt()).rejects.toMatchObject({ reason: 'BadRequest' })
  })

  test.each(bad)('%j is no development user', async (developmentUser) => {
    await expect(createGuard({ audiences: ['a/b'], x5c: false, developmentUser })).rejects.toThrow(
      'developmentUser',
    )
  })
})
