import { describe, expect, test } from 'vitest'
import { type ReviewKind, wellKnown } from '../core/index.ts'
import { type ClusterAbilities, type ClusterLab, signal } from './cluster-lab.suite.ts'
import { named, unique } from './drafts.suite.ts'
import { testOf } from './test-of.suite.ts'

/** Cases of questions that nobody stores. */
export function describeReviews(lab: ClusterLab, abilities: ClusterAbilities): void {
  const { namespace, create } = lab

  describe('reviews', () => {
    const ask = async (kind: ReviewKind, spec: object, metadata: { namespace?: string } = {}) => {
      const group =
        kind.includes('Token') || kind === 'SelfSubjectReview' ? 'authentication' : 'authorization'
      const apiVersion = `${group}.k8s.io/v1`
      const object = { apiVersion, kind, metadata: { name: '', ...metadata }, spec }
      const answer = await lab.view.review(kind, object, signal)
      return answer['status'] as Record<string, unknown>
    }
    const readSecrets = () => ({ namespace, verb: 'get', resource: 'secrets' })

    test.each([
      ['SubjectAccessReview', [wellKnown.masters], true],
      ['SubjectAccessReview', ['nobodies'], false],
      ['LocalSubjectAccessReview', [wellKnown.masters], true],
      ['LocalSubjectAccessReview', ['nobodies'], false],
    ] as const)('%s decides about a user of %s: %s [GND-R85]', async (kind, groups, allowed) => {
      const spec = { user: 'jane', groups, resourceAttributes: readSecrets() }
      const metadata = kind === 'LocalSubjectAccessReview' ? { namespace } : {}
      expect((await ask(kind, spec, metadata))['allowed'] ?? false).toBe(allowed)
    })

    test('the reviews of oneself answer for the one who asks [GND-R85]', async () => {
      const access = { resourceAttributes: readSecrets() }
      expect(await ask('SelfSubjectAccessReview', access)).toMatchObject({ allowed: true })
      expect(await ask('SelfSubjectRulesReview', { namespace })).toMatchObject({
        resourceRules: expect.arrayContaining([expect.objectContaining({ verbs: ['*'] })]),
      })
      expect(await ask('SelfSubjectReview', {})).toMatchObject({
        userInfo: { groups: expect.arrayContaining([wellKnown.authenticated]) },
      })
    })

    test('a token that nobody knows is not authenticated [GND-R85]', async () => {
      const status = await ask('TokenReview', { token: 'made-up' })
      expect(status['authenticated'] ?? false).toBe(false)
      expect(status['error']).toEqual(expect.any(String))
    })

    const { token, issuesTokens } = abilities
    testOf(token)('a known token is told to be its user [GND-R85]', async () => {
      const { value, username } = token!()
      expect(await ask('TokenReview', { token: value })).toMatchObject({
        authenticated: true,
        user: { username },
      })
    })

    testOf(issuesTokens)('a TokenRequest gives a token of its account [GND-R85]', async () => {
      const name = unique('account')
      await create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: named(namespace, name),
      })
      const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' }
      const metadata = named(namespace, name)
      const spec = { audiences: [], expirationSeconds: 600 }
      const answer = await lab.view.review('TokenRequest', { ...request, metadata, spec }, signal)
      const issued = answer['status'] as { token: string }
      expect(await ask('TokenReview', { token: issued.token })).toMatchObject({
        user: { username: `system:serviceaccount:${namespace}:${name}` },
      })
    })

    test('a review that asks nothing is Invalid [GND-R85]', async () => {
      await expect(ask('SubjectAccessReview', { user: 'jane' })).rejects.toMatchObject({
        reason: 'Invalid',
      })
    })
  })
}
