/**
 * Valid client certificates that a node may have at once. All of them are remembered, so that a
 * replacement revokes all of them.
 */
export const maxNodeCertificates = 200
