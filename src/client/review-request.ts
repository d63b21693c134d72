import {
  apiVersionOf,
  type Kind,
  type KubeObject,
  type ReviewKind,
  wellKnownKinds,
} from '../core/index.ts'
import { creationPath, objectPath } from './resource-path.ts'

const authentication = { group: 'authentication.k8s.io', version: 'v1' } as const
const authorization = { group: 'authorization.k8s.io', version: 'v1' } as const

const groupVersionOf: Readonly<Record<ReviewKind, Pick<Kind, 'group' | 'version'>>> = {
  TokenReview: authentication,
  SelfSubjectReview: authentication,
  TokenRequest: authentication,
  SubjectAccessReview: authorization,
  LocalSubjectAccessReview: authorization,
  SelfSubjectAccessReview: authorization,
  SelfSubjectRulesReview: authorization,
}

/** Where the API serves a review. */
export const reviewKind = (kind: ReviewKind): Kind => ({
  ...groupVersionOf[kind],
  kind,
  resource: `${kind.toLowerCase()}s`,
  namespaced: kind === 'LocalSubjectAccessReview',
})

/** Path and body of a review; a TokenRequest is named after its service account. */
export function reviewRequest(
  kind: ReviewKind,
  object: KubeObject,
): { readonly path: string; readonly body: KubeObject } {
  const { metadata } = object
  const resource = reviewKind(kind)
  const path =
    kind === 'TokenRequest'
      ? objectPath(wellKnownKinds.serviceAccount, metadata, 'token')
      : creationPath(resource, metadata.namespace)
  return { path, body: { ...object, kind, apiVersion: apiVersionOf(resource) } }
}
