import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import {
  BootstrapTokenInvalid,
  generateBootstrapToken,
  parseBootstrapToken,
  tokenText,
  weaknessOf,
} from './bootstrap-token.ts'
import { isExpired, isSameSecret, readTokenSecret, tokenSecret } from './stored-token.ts'

describe('a token', () => {
  test('that was made is read again, and every letter may be in it', () => {
    const letters = new Set<string>()
    for (let index = 0; index < 200; index++) {
      const made = generateBootstrapToken()
      const text = tokenText(made).reveal()
      expect(tokenText(parseBootstrapToken(text)).reveal()).toBe(text)
      for (const letter of made.secret.reveal()) letters.add(letter)
    }
    expect(letters.size).toBe(36)
  })

  test('can have a longer secret', () => {
    const made = generateBootstrapToken(40)
    expect(parseBootstrapToken(tokenText(made).reveal()).secret.reveal()).toHaveLength(40)
  })

  test.each([
    ['no dot', 'ae23dcfaddc87f5a5ab458', /0 dots/],
    ['two dots', 'ae23dc.fad.dc87f5a5ab458', /2 dots/],
    ['capitals', 'AE23DC.faddc87f5a5ab458', /small letters/],
    ['a line end', 'ae23dc.faddc87f5a5ab458\n', /line ends/],
    ['a short id', 'ae23d.faddc87f5a5ab458', /5 letters instead of 6/],
    ['a short secret', 'ae23dc.faddc87f5a5ab45', /15 letters instead of 16/],
    ['no secret', 'ae23dc.', /0 letters/],
  ])('with %s is refused, and the message keeps it to itself', (_name, text, message) => {
    expect(() => parseBootstrapToken(text)).toThrow(message)
    expect(() => parseBootstrapToken(text)).toThrow(BootstrapTokenInvalid)
    const secret = text.split('.')[1]?.trim() ?? ''
    const said = (() => {
      try {
        parseBootstrapToken(text)
        return ''
      } catch (error) {
        return String(error)
      }
    })()
    expect(secret.length > 3 && said.includes(secret)).toBe(false)
  })

  test.each([
    ['aaaaaa.aaaaaaaaaaaaaaaa', /few different/],
    ['aaaaaa.1029384756102938', /digits only/],
    ['ae23dc.faddc87f5a5ab458', /hexadecimal/],
    ['aaaaaa.wxyz1234wxyz1234', /repeats/],
  ])('%s is easy to guess', (text, why) => {
    expect(weaknessOf(parseBootstrapToken(text))).toMatch(why)
  })

  test('that was made is not', () => {
    expect(weaknessOf(parseBootstrapToken('zq81kp.x7w0vbt3nq9zr5ml'))).toBeUndefined()
  })
})

describe('the Secret of a token', () => {
  const whole = {
    token: parseBootstrapToken('ae23dc.faddc87f5a5ab458'),
    expiresAt: Date.parse('2030-01-31T12:00:00Z'),
    usages: new Set(['signing', 'authentication'] as const),
    extraGroups: ['system:bootstrappers:kubeadm:default-node-token'],
    description: 'the first',
    maxUses: 3,
    boundNodeName: 'node-1',
  }

  test('is read as it was written', () => {
    const { stored, problems } = readTokenSecret(tokenSecret(whole))
    expect(problems).toEqual([])
    expect(stored && { ...stored, token: tokenText(stored.token).reveal() }).toEqual({
      ...whole,
      token: 'ae23dc.faddc87f5a5ab458',
    })
  })

  const changed = (changes: Record<string, string | undefined>, metadata = {}): KubeObject => {
    const secret = tokenSecret(whole)
    const data: Record<string, unknown> = { ...(secret['data'] as object) }
    for (const [field, value] of Object.entries(changes)) {
      if (value === undefined) delete data[field]
      else data[field] = Buffer.from(value).toString('base64')
    }
    return { ...secret, metadata: { ...secret.metadata, ...metadata }, data }
  }

  test.each([
    ['no id', { 'token-id': undefined }, {}, ['token-id', 'token-id']],
    ['an id that is not in its name', { 'token-id': 'ffffff' }, {}, ['token-id']],
    ['another namespace', {}, { namespace: 'default' }, ['token-id']],
    ['no secret', { 'token-secret': undefined }, {}, ['token-secret']],
    ['an empty secret', { 'token-secret': '' }, {}, ['token-secret']],
    ['an end in words', { expiration: 'tomorrow' }, {}, ['expiration']],
    ['a foreign group', { 'auth-extra-groups': 'system:masters' }, {}, ['auth-extra-groups']],
    ['no uses', { 'max-uses': '0' }, {}, ['max-uses']],
    ['a node name with a space', { 'bound-node-name': 'a b' }, {}, ['bound-node-name']],
    [
      'several faults',
      { expiration: 'x', 'token-secret': 'X' },
      {},
      ['token-secret', 'expiration'],
    ],
  ])('with %s is refused with the field', (_name, changes, metadata, fields) => {
    const { stored, problems } = readTokenSecret(changed(changes, metadata))
    expect(stored).toBeUndefined()
    expect(problems.map(({ field }) => field)).toEqual(fields.map((field) => `data[${field}]`))
    expect(JSON.stringify(problems)).not.toContain('faddc87f5a5ab458')
  })

  test('expires at its end, or never', () => {
    expect(isExpired(whole, whole.expiresAt - 1)).toBe(false)
    expect(isExpired(whole, whole.expiresAt)).toBe(true)
    const { expiresAt: _end, ...endless } = whole
    expect(isExpired(endless, Number.MAX_SAFE_INTEGER)).toBe(false)
  })

  test('with an empty end never expires, as in Kubernetes', () => {
    expect(readTokenSecret(changed({ expiration: '' })).stored).not.toHaveProperty('expiresAt')
  })

  test('whatever is in it, reading it breaks nothing', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer())), (data) => {
        expect(readTokenSecret({ ...tokenSecret(whole), data }).stored).toBeUndefined()
      }),
    )
  })
})

test('secrets are compared as a whole', () => {
  const [a, b, c] = ['aa.b', 'aa.c', 'aa.bb'].map((text) => ({ reveal: () => text }) as never)
  expect([
    a && b && isSameSecret(a, b),
    a && isSameSecret(a, a),
    a && c && isSameSecret(a, c),
  ]).toEqual([false, true, false])
})
