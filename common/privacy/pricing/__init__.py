"""What a release costs beside others: prices, compositions, gains."""
