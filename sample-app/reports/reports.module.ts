import { Module } from '@nestjs/common';
import { StockModule } from '../stock/stock.module.js';
import { NightlyReportService } from './nightly-report.service.js';
import { ReportsController } from './reports.controller.js';

@Module({
  imports: [StockModule],
  controllers: [ReportsController],
  providers: [NightlyReportService],
})
export class ReportsModule {}
