const authenticationGroup = 'client.authentication.k8s.io'

/** The version of the proposal, and of Kubernetes 1.10 to 1.23. */
export const v1alpha1 = `${authenticationGroup}/v1alpha1`
const v1beta1 = `${authenticationGroup}/v1beta1`
/** Kubernetes 1.22 and later; says what its interactive mode is. */
export const v1 = `${authenticationGroup}/v1`

const known: readonly string[] = [v1alpha1, v1beta1, v1]

/** Tells whether we speak this version. */
export const isKnownVersion = (apiVersion: string): boolean => known.includes(apiVersion)

/** All versions, for messages. */
export const knownVersions = known.join(', ')

/** The variable that tells a plugin what is asked of it. */
export const execInfoVariable = 'KUBERNETES_EXEC_INFO'
