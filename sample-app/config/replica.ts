/** What this process calls itself in receipts and reports. */
export const REPLICA = process.env.SHOP_NAME || `shop-${process.pid}`;
