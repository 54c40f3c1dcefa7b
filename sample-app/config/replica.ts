/** The name of this process in receipts and reports. */
export const REPLICA = process.env.SHOP_NAME || `shop-${process.pid}`;
