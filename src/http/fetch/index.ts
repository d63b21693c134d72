export { type AddressTest, addressTest, type PrivateAddresses } from '../address-rules.ts'
export * from '../fetch-document.ts'
export { rawHeaderValues } from '../headers.ts'
