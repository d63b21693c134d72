import { CredentialError } from '../credential-error.ts'

/** What took the place of the providers that were built into kubectl once. */
const replacements: Readonly<Record<string, string>> = {
  gcp: 'the plugin gke-gcloud-auth-plugin: install it and run `gcloud container clusters get-credentials`',
  azure:
    'the plugin kubelogin (github.com/Azure/kubelogin): install it and run `kubelogin convert-kubeconfig`',
  openstack: 'the plugin client-keystone-auth of cloud-provider-openstack',
}

/** Refuses an `auth-provider` that is gone or was never known. */
export function refusedProvider(name: string): CredentialError {
  const replacement = Object.hasOwn(replacements, name) ? replacements[name] : undefined
  if (replacement !== undefined) {
    return new CredentialError(
      'UNSUPPORTED',
      `auth-provider ${name} was removed from Kubernetes: exec plugins took its place`,
      { hint: `use ${replacement}` },
    )
  }
  return new CredentialError(
    'UNSUPPORTED',
    `there is no auth-provider ${JSON.stringify(name.slice(0, 80))}`,
    { hint: 'use an exec plugin instead; of the old providers only oidc is left' },
  )
}
